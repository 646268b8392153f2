package registry

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// A resize changes cpu and memory of containers, and neither adds, removes nor changes anything else.
func TestResize(t *testing.T) {
	table := Builtin(Options{})
	r := table.Lookup(core("pods"))
	sub := r.Subresource("resize")
	pod := func(resources string) *corev1.Pod {
		return decoded(t, table, core("pods"), podWith(`,"resources":`+resources, "")).(*corev1.Pod)
	}
	const small = `{"requests":{"cpu":"1"}}`
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{"more cpu", small, `{"requests":{"cpu":"2"}}`, []string{}},
		{"another class", small, `{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}`, []string{
			"spec: Invalid value: Pod QOS Class may not change as a result of resizing"}},
		{"less than before", `{"requests":{"cpu":"1","memory":"1"}}`, small, []string{
			"spec.containers[0].resources.requests: Forbidden: resource memory cannot be removed"}},
		{"something else", small, `{"requests":{"cpu":"1","ephemeral-storage":"1"}}`, []string{
			"spec.containers[0].resources.requests[ephemeral-storage]: Forbidden: only cpu and memory resources are mutable"}},
	} {
		old, next := pod(c.from), pod(c.to)
		next.Spec.Containers[0].Image = "other"
		next.Labels = map[string]string{"a": "b"}
		sub.Update(context.Background(), next, old)
		require.Equal(t, "i", next.Spec.Containers[0].Image, c.name)
		require.Empty(t, next.Labels, c.name)
		require.Equal(t, c.want, faultsOf(sub.Validate(context.Background(), next, old)), c.name)
	}
}
