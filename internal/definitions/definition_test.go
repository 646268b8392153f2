package definitions

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Sizes and depths are those of real definitions.
func TestSized(t *testing.T) {
	typical, err := json.Marshal(Sized("Widget", Typical))
	require.NoError(t, err)
	require.InDelta(t, Typical, len(typical), Typical/5)

	large, err := json.Marshal(Sized("Widget", Large))
	require.NoError(t, err)
	require.InDelta(t, Large, len(large), Large/5)
	require.GreaterOrEqual(t, depth(large), 35)
	manifest, err := yaml.JSONToYAML(large)
	require.NoError(t, err)
	t.Logf("%d bytes of JSON, %d levels, %d bytes of YAML", len(large), depth(large), len(manifest))
}

func depth(document []byte) (deepest int) {
	level, quoted := 0, false
	for i, c := range document {
		switch {
		case c == '"' && document[i-1] != '\\':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}
