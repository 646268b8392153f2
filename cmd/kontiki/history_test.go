package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver"
	"kontiki/internal/testcluster"
)

func TestHistoryCommand(t *testing.T) {
	cluster := testcluster.Start(t)
	t.Setenv("HOME", t.TempDir()) // kubectl's cache of discovery is there
	maps := cluster.Admin().CoreV1().ConfigMaps("default")
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Data["k"] = "2"
	_, err = maps.Update(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	history := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := historyCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(&out)
		cmd.SetArgs(append(args, "--kubeconfig", cluster.Kubeconfig()))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	_, err = history("none/a")
	require.EqualError(t, err, `the server has no resource type "none"`)
	_, err = history("cm/none")
	require.ErrorContains(t, err, `configmaps "none" not found`)
	_, err = history("cm")
	require.ErrorContains(t, err, "KIND/NAME")

	text, err := history("cm/a")
	require.NoError(t, err)
	require.Contains(t, text, "ADDED")
	require.Contains(t, text, `    ~ data.k: "1" → "2"`)
	require.Contains(t, text, "by kubernetes-admin")

	text, err = history("cm/a", "-o", "json")
	require.NoError(t, err)
	var h apiserver.ObjectHistory
	require.NoError(t, json.Unmarshal([]byte(text), &h))
	require.Len(t, h.Items, 2)
	require.Contains(t, string(h.Items[0].Object), `"k": "1"`)
}
