package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// defaultPodResources fills in what a pod as a whole asks for, from what its containers ask for together. It does so
// only for a pod that says something about itself, and only when it is made.
func defaultPodResources(s *corev1.PodSpec) {
	own := s.Resources
	if own == nil || len(own.Requests)+len(own.Limits) == 0 {
		return
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: s.Containers, InitContainers: s.InitContainers}}
	requests := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	if own.Limits == nil {
		own.Limits = corev1.ResourceList{}
	}
	if own.Requests == nil {
		own.Requests = corev1.ResourceList{}
	}
	for name, limit := range limits {
		if _, asked := own.Requests[name]; !asked && isHugePages(name) {
			addResource(own.Limits, name, limit)
		}
	}
	for name, request := range requests {
		if overcommittable(name) {
			addResource(own.Requests, name, request)
		}
	}
	for name, limit := range own.Limits {
		addResource(own.Requests, name, limit)
	}
	for name, request := range own.Requests {
		if limit, ok := limits[name]; ok && allLimit(s, name) {
			if request.Cmp(limit) > 0 {
				limit = request
			}
			addResource(own.Limits, name, limit)
		}
	}
	own.Limits, own.Requests = orNone(own.Limits), orNone(own.Requests)
}

// addResource adds what a pod as a whole can have, and has not.
func addResource(list corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if _, ok := list[name]; !ok && resourcehelper.IsSupportedPodLevelResource(name) {
		list[name] = quantity.DeepCopy()
	}
}

// allLimit: the sum of the limits is one only if no container is without.
func allLimit(s *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, c := range everyContainer(s) {
		if _, ok := c.Resources.Limits[name]; !ok {
			return false
		}
	}
	return true
}

func orNone(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return nil
	}
	return list
}
