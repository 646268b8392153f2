package quota

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// serviceMeasure is that of services: their number, the load balancers among them, and the node ports they get.
func serviceMeasure() *Measure {
	services := corev1.Resource("services")
	names := []corev1.ResourceName{countName(services), corev1.ResourceServices, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers}
	return &Measure{
		Resource: services,
		tracks:   func(name corev1.ResourceName) bool { return slices.Contains(names, name) },
		usage: func(obj runtime.Object, _ time.Time) corev1.ResourceList {
			out := corev1.ResourceList{names[0]: one(), corev1.ResourceServices: one()}
			service, ok := obj.(*corev1.Service)
			if !ok {
				return out
			}
			if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
				out[corev1.ResourceServicesLoadBalancers] = one()
			}
			if n := nodePorts(&service.Spec); n > 0 {
				out[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(n, resource.DecimalSI)
			}
			return out
		},
		grows: func(subresource string, _, _ runtime.Object) bool { return subresource == "" },
	}
}

// nodePorts is how many node ports a service gets: it is asked before they are given out.
func nodePorts(s *corev1.ServiceSpec) int64 {
	switch {
	case s.Type != corev1.ServiceTypeNodePort && s.Type != corev1.ServiceTypeLoadBalancer:
		return 0
	case s.Type == corev1.ServiceTypeNodePort || s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts:
		return int64(len(s.Ports))
	}
	n := int64(0)
	for _, port := range s.Ports {
		if port.NodePort != 0 {
			n++
		}
	}
	return n
}
