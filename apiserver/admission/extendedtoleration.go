package admission

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// extendedResourceToleration lets a pod that asks for devices onto the nodes that are kept for those who do: it tolerates
// the taint whose key is the resource. Off unless it is enabled.
type extendedResourceToleration struct{}

// Mutate implements Mutator.
func (extendedResourceToleration) Mutate(_ context.Context, r *Request) error {
	pod, ok := r.Object.(*corev1.Pod)
	if !ok || !r.writes(pods, true) {
		return nil
	}
	asked := map[string]bool{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name := range list[i].Resources.Requests {
				if extendedResource(string(name)) {
					asked[string(name)] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		tolerates := func(t corev1.Toleration) bool {
			return t.Key == name && t.Operator == corev1.TolerationOpExists && t.Effect == ""
		}
		if !slices.ContainsFunc(pod.Spec.Tolerations, tolerates) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists})
		}
	}
	return nil
}

// extendedResource: one with a domain that is not Kubernetes' own.
func extendedResource(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix)
}
