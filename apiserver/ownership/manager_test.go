package ownership

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManagerName(t *testing.T) {
	require.Equal(t, "asked", ManagerName("asked", "kubectl/v1"))
	require.Equal(t, "kubectl", ManagerName("", "kubectl/v1.37.2 (linux/amd64)"))
	require.Equal(t, "ab", ManagerName("", "a\x00b"))
	require.Len(t, ManagerName("", strings.Repeat("é", 1000)), 128)
}
