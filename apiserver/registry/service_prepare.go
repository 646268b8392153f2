package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// prepareServiceCreate keeps clusterIP and clusterIPs in step and settles the IP families.
func (a serviceAllocator) prepareServiceCreate(s *corev1.Service) {
	if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	a.settleFamilies(&s.Spec, &corev1.ServiceSpec{})
}

// prepareServiceUpdate carries over what the server had allocated and the client left out (a PUT of
// a manifest), and drops what the old type had and the new one does not.
func (a serviceAllocator) prepareServiceUpdate(s, old *corev1.Service) {
	carryOver(&s.Spec, &old.Spec)
	dropOldType(&s.Spec, &old.Spec)
	syncClusterIPs(&s.Spec, &old.Spec)
	a.settleFamilies(&s.Spec, &old.Spec)
}

type portKey struct {
	port     int32
	protocol corev1.Protocol
}

func carryOver(spec, old *corev1.ServiceSpec) {
	if needsClusterIP(spec) && needsClusterIP(old) {
		setDefault(&spec.ClusterIP, old.ClusterIP)
		if len(spec.ClusterIPs) == 0 && spec.ClusterIP == old.ClusterIP {
			spec.ClusterIPs = slices.Clone(old.ClusterIPs)
		}
	}
	if needsNodePort(spec) && needsNodePort(old) {
		carryOverNodePorts(spec, old)
	}
	if needsHealthCheckPort(spec) && needsHealthCheckPort(old) {
		setDefault(&spec.HealthCheckNodePort, old.HealthCheckNodePort)
	}
}

// carryOverNodePorts gives a port without a node port the one that the same port had before, unless
// the client has put it elsewhere.
func carryOverNodePorts(spec, old *corev1.ServiceSpec) {
	had, used := map[portKey]int32{}, map[int32]bool{}
	for _, p := range old.Ports {
		had[portKey{p.Port, p.Protocol}] = p.NodePort
	}
	for _, p := range spec.Ports {
		used[p.NodePort] = true
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if port := had[portKey{p.Port, p.Protocol}]; p.NodePort == 0 && !used[port] {
			p.NodePort = port
			used[port] = true
		}
	}
}

// dropOldType forgets allocations that the new type has no use for, if the client merely left them
// in; a value that the client has changed is kept, for validation to judge.
func dropOldType(spec, old *corev1.ServiceSpec) {
	if needsClusterIP(old) && !needsClusterIP(spec) {
		if spec.ClusterIP == old.ClusterIP {
			spec.ClusterIP = ""
		}
		if slices.Equal(spec.ClusterIPs, old.ClusterIPs) {
			spec.ClusterIPs = nil
		}
		spec.IPFamilies, spec.IPFamilyPolicy = nil, nil
	}
	if needsNodePort(old) && !needsNodePort(spec) && sameNodePorts(spec, old) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if needsHealthCheckPort(old) && !needsHealthCheckPort(spec) && spec.HealthCheckNodePort == old.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	if externallyReachable(old) && !externallyReachable(spec) && spec.ExternalTrafficPolicy == old.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer && old.Type == corev1.ServiceTypeLoadBalancer {
		spec.AllocateLoadBalancerNodePorts, spec.LoadBalancerClass = nil, nil
	}
}

func sameNodePorts(spec, old *corev1.ServiceSpec) bool {
	had := map[int32]bool{0: true}
	for _, p := range old.Ports {
		had[p.NodePort] = true
	}
	return !slices.ContainsFunc(spec.Ports, func(p corev1.ServicePort) bool { return !had[p.NodePort] })
}

// syncClusterIPs lets a client that knows only one of clusterIP and clusterIPs write either.
func syncClusterIPs(spec, old *corev1.ServiceSpec) {
	sameList := slices.Equal(spec.ClusterIPs, old.ClusterIPs)
	switch {
	case spec.ClusterIP == "" && old.ClusterIP != "" && sameList:
		spec.ClusterIPs = nil
	case spec.ClusterIP != "" && (len(spec.ClusterIPs) == 0 || (spec.ClusterIP != old.ClusterIP && sameList)):
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}
