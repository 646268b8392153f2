package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
)

// amounts are quantities of resources: CPU in thousandths, memory and storage in bytes, everything else in units.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := make(amounts, len(list))
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			out[name] = quantity.MilliValue()
		} else {
			out[name] = quantity.Value()
		}
	}
	return out
}

func (a amounts) add(b amounts) {
	for name, n := range b {
		a[name] += n
	}
}

func (a amounts) sub(b amounts) {
	for name, n := range b {
		a[name] -= n
	}
}

// Containers that ask for nothing still use something. For scoring, not for filtering, they count as this much, so that a
// crowd of them does not pile up on one node.
var scoredDefaults = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("100m"),
	corev1.ResourceMemory: resource.MustParse("200Mi"),
}

// podRequest is the effective request: the larger of what the containers need together and what any init container needs,
// with the sidecars that run by then, plus overhead (Kubernetes: "Resource sharing within containers").
func podRequest(pod *corev1.Pod) amounts {
	return amountsOf(podresources.PodRequests(pod, podresources.PodResourcesOptions{UseStatusResources: true}))
}

func podScoredRequest(pod *corev1.Pod) amounts {
	return amountsOf(podresources.PodRequests(pod, podresources.PodResourcesOptions{
		UseStatusResources: true, NonMissingContainerRequests: scoredDefaults,
	}))
}
