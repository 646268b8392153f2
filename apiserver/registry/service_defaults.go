package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func defaultService(s *corev1.Service) {
	spec := &s.Spec
	setDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	defaultAffinity(spec)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		setDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if externallyReachable(spec) {
		setDefault(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		setPointer(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		setPointer(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range s.Status.LoadBalancer.Ingress {
			if in := &s.Status.LoadBalancer.Ingress[i]; in.IP != "" {
				setPointer(&in.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

// defaultAffinity: a client stays with its pod for three hours, where affinity is asked for.
func defaultAffinity(spec *corev1.ServiceSpec) {
	setDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		setPointer(&spec.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		setPointer(&spec.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		setPointer(&spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
}

func externallyReachable(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer || spec.Type == corev1.ServiceTypeNodePort ||
		(spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0)
}

func needsClusterIP(spec *corev1.ServiceSpec) bool {
	return spec.Type != corev1.ServiceTypeExternalName
}

func needsNodePort(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeNodePort || (spec.Type == corev1.ServiceTypeLoadBalancer &&
		(spec.AllocateLoadBalancerNodePorts == nil || *spec.AllocateLoadBalancerNodePorts))
}

func needsHealthCheckPort(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
