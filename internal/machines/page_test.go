package machines

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPage(t *testing.T) {
	sections := Page("# Title\n\n## One\n\n```\nn1# first               # why\nn2# second a; b\nplain\n```\nn3# no block\n\n## Two\n\n" +
		"| what | how | sees |\n|---|---|---|\n| a cut | `n2# poweroff`, then `n3# poweroff` | `n1# not` this |\n| other | `command` | |\n")
	require.Equal(t, []Section{
		{Rows: map[string][]Step{}},
		{Heading: "One", Steps: []Step{{"n1", "first"}, {"n2", "second a; b"}}, Rows: map[string][]Step{}},
		{Heading: "Two", Rows: map[string][]Step{"a cut": {{"n2", "poweroff"}, {"n3", "poweroff"}}}},
	}, sections)
}
