package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// taintNodes gives a new node the taint of one that is not ready, so that nothing is put on it before the node lifecycle
// controller has seen it ready and takes the taint away.
type taintNodes struct{}

var nodes = corev1.SchemeGroupVersion.WithResource("nodes")

// Mutate implements Mutator.
func (taintNodes) Mutate(_ context.Context, r *Request) error {
	node, ok := r.Object.(*corev1.Node)
	if !ok || !r.writes(nodes, false) {
		return nil
	}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) }) {
		node.Spec.Taints = append(node.Spec.Taints, notReady)
	}
	return nil
}
