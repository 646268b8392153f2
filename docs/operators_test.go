package docs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOperatorsShowsTheProgram: what docs/operators.md tells people to copy is what is compiled.
func TestOperatorsShowsTheProgram(t *testing.T) {
	page, err := os.ReadFile("operators.md")
	require.NoError(t, err)
	program, err := os.ReadFile("../examples/firstoperator/main.go")
	require.NoError(t, err)
	require.Contains(t, string(page), "```go\n"+string(program)+"```\n")
}
