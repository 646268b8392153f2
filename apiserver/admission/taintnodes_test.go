package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestTaintNodes(t *testing.T) {
	node := &corev1.Node{ObjectMeta: named("n")}
	for range 2 { // once
		require.NoError(t, taintNodes{}.Mutate(t.Context(), write(node, nil, "")))
		require.Equal(t, []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}}, node.Spec.Taints)
	}
	ready := &corev1.Node{ObjectMeta: named("n")}
	require.NoError(t, taintNodes{}.Mutate(t.Context(), write(ready, node, "")))
	require.Empty(t, ready.Spec.Taints, "the controller takes it away")
}
