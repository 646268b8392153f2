package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestPodTopology(t *testing.T) {
	node := &corev1.Node{ObjectMeta: named("n")}
	node.Labels = map[string]string{"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "disk": "fast"}
	p := podTopology{&cluster{objects: []runtime.Object{node}}}
	want := map[string]string{"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}

	binding := &corev1.Binding{ObjectMeta: inNS("p"), Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	require.NoError(t, p.Mutate(t.Context(), write(binding, nil, "binding")))
	require.Equal(t, want, binding.Labels)
	placed, waiting, lost := podOn("n"), podOn(""), podOn("gone")
	for _, pod := range []*corev1.Pod{placed, waiting, lost} {
		require.NoError(t, p.Mutate(t.Context(), write(pod, nil, "")))
	}
	require.Equal(t, want, placed.Labels)
	require.Empty(t, waiting.Labels)
	require.Empty(t, lost.Labels)
}
