package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// defaultTolerationSeconds lets pods that say nothing about it stay for five minutes on a node that is not ready or
// cannot be reached, before they are evicted.
type defaultTolerationSeconds struct{}

const stayOnBadNode = int64(300)

// Mutate implements Mutator. Updates too: the manifest that a pod was made from can be sent again.
func (defaultTolerationSeconds) Mutate(_ context.Context, r *Request) error {
	pod, ok := r.Object.(*corev1.Pod)
	if !ok || r.Subresource != "" {
		return nil
	}
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !toleratesEviction(pod.Spec.Tolerations, taint) {
			seconds := stayOnBadNode
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	}
	return nil
}

func toleratesEviction(tolerations []corev1.Toleration, taint string) bool {
	for _, t := range tolerations {
		if (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
