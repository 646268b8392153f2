package objectdiff

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func object(t *testing.T, text string) (o map[string]any) {
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	return o
}

func TestDiff(t *testing.T) {
	from := object(t, `{"metadata":{"resourceVersion":"1","labels":{"a.b/c":"x","gone":"y"}},"spec":{"replicas":1,
		"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}],"args":["x","y"]}}`)
	to := object(t, `{"metadata":{"resourceVersion":"2","labels":{"a.b/c":"z"}},"spec":{"replicas":3,
		"containers":[{"name":"b","image":"2"},{"name":"c"}],"args":["x","z","w"],"new":{"deep":true}}}`)
	var lines []string
	for _, c := range Diff(from, to) {
		lines = append(lines, c.String())
	}
	require.Equal(t, []string{
		`~ metadata.labels["a.b/c"]: "x" → "z"`,
		`- metadata.labels.gone: "y"`,
		`~ spec.args[1]: "y" → "z"`,
		`+ spec.args[2]: "w"`,
		`- spec.containers[name=a]: {"image":"1","name":"a"}`,
		`~ spec.containers[name=b].image: "1" → "2"`,
		`+ spec.containers[name=c]: {"name":"c"}`,
		`+ spec.new: {"deep":true}`,
		`~ spec.replicas: 1 → 3`,
	}, lines)
	require.Empty(t, Diff(to, to))
	require.Equal(t, `+ metadata.labels: {"a.b/c":"z"}`, Diff(nil, to)[0].String())
}

func FuzzDiff(f *testing.F) {
	f.Add(`{"a":[{"name":1},2]}`, `{"a":[{"name":"1"}],"b":null}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var from, to map[string]any
		if json.Unmarshal([]byte(a), &from) != nil || json.Unmarshal([]byte(b), &to) != nil {
			t.Skip("not two objects")
		}
		require.Empty(t, Diff(from, from))
		require.Len(t, Diff(from, to), len(Diff(to, from)))
	})
}
