package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScaleTable: a scale has columns of its own, not those of its parent.
func TestScaleTable(t *testing.T) {
	_, c := start(t)
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	c.post(deployments, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`).ok()
	table := c.get(deployments+"/d/scale", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").ok().object().Object
	rows := table["rows"].([]any)
	require.Len(t, rows, 1)
	require.Equal(t, []any{"d", int64(3), int64(0)}, rows[0].(map[string]any)["cells"].([]any)[:3])
	require.Len(t, table["columnDefinitions"], 4)
}
