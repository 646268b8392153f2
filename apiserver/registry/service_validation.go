package registry

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate judges a Service before addresses and ports are allocated for it.
func (a serviceAllocator) validate(s *corev1.Service) field.ErrorList {
	spec := &s.Spec
	headless := spec.ClusterIP == corev1.ClusterIPNone
	faults := oneOf(specPath.Child("type"), spec.Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	if len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName {
		faults = append(faults, field.Required(specPath.Child("ports"), ""))
	}
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		faults = append(faults, validateExternalName(spec)...)
	case headless && spec.Type != corev1.ServiceTypeClusterIP:
		detail := fmt.Sprintf("may not be set to 'None' for %s services", spec.Type)
		faults = append(faults, field.Invalid(specPath.Child("clusterIPs").Index(0), spec.ClusterIP, detail))
	}
	faults = append(faults, validateServicePorts(specPath.Child("ports"), spec)...)
	faults = append(faults, metavalidation.ValidateLabels(spec.Selector, specPath.Child("selector"))...)
	faults = append(faults, validateAffinity(spec)...)
	faults = append(faults, a.validateClusterIPs(spec)...)
	for i, ip := range spec.ExternalIPs {
		faults = append(faults, endpointIP(specPath.Child("externalIPs").Index(i), ip)...)
	}
	faults = append(faults, validateLoadBalancer(spec)...)
	return append(faults, validateTrafficPolicies(spec)...)
}

func validateExternalName(spec *corev1.ServiceSpec) field.ErrorList {
	var faults field.ErrorList
	for child, set := range inOrder(map[string]bool{
		"clusterIPs": len(spec.ClusterIPs) > 0, "ipFamilies": len(spec.IPFamilies) > 0, "ipFamilyPolicy": spec.IPFamilyPolicy != nil,
	}) {
		if set {
			faults = append(faults, field.Forbidden(specPath.Child(child), "may not be set for ExternalName services"))
		}
	}
	name := strings.TrimSuffix(spec.ExternalName, ".")
	if name == "" {
		return append(faults, field.Required(specPath.Child("externalName"), ""))
	}
	return append(faults, dnsSubdomain(specPath.Child("externalName"), name)...)
}

func validateServicePorts(path *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	ports, nodePorts := map[portKey]bool{}, map[portKey]bool{}
	for i, p := range spec.Ports {
		at := path.Index(i)
		if len(spec.Ports) > 1 || p.Name != "" {
			faults = append(faults, dnsLabel(at.Child("name"), p.Name)...)
			faults = append(faults, seen.add(at.Child("name"), p.Name)...)
		}
		faults = append(faults, portNumber(at.Child("port"), p.Port)...)
		faults = append(faults, protocol(at.Child("protocol"), p.Protocol)...)
		faults = append(faults, portOrName(at.Child("targetPort"), p.TargetPort)...)
		if p.AppProtocol != nil {
			faults = append(faults, qualifiedName(at.Child("appProtocol"), *p.AppProtocol)...)
		}
		if p.NodePort != 0 && spec.Type == corev1.ServiceTypeClusterIP {
			faults = append(faults, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		if key := (portKey{p.Port, p.Protocol}); ports[key] {
			faults = append(faults, field.Duplicate(at, shown(corev1.ServicePort{Protocol: p.Protocol, Port: p.Port})))
		} else {
			ports[key] = true
		}
		if key := (portKey{p.NodePort, p.Protocol}); p.NodePort != 0 && nodePorts[key] {
			faults = append(faults, field.Duplicate(at.Child("nodePort"), p.NodePort))
		} else {
			nodePorts[key] = true
		}
	}
	return faults
}

func validateAffinity(spec *corev1.ServiceSpec) field.ErrorList {
	faults := oneOf(specPath.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		if t := *c.ClientIP.TimeoutSeconds; t <= 0 || t > 86400 {
			faults = append(faults, field.Invalid(specPath.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), t, "must be greater than 0 and less than 86400"))
		}
	}
	return faults
}

func validateLoadBalancer(spec *corev1.ServiceSpec) field.ErrorList {
	var faults field.ErrorList
	ranges := specPath.Child("LoadBalancerSourceRanges") // Kubernetes' own spelling
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		for child, set := range inOrder(map[string]bool{
			"LoadBalancerSourceRanges":      len(spec.LoadBalancerSourceRanges) > 0,
			"allocateLoadBalancerNodePorts": spec.AllocateLoadBalancerNodePorts != nil,
			"loadBalancerClass":             spec.LoadBalancerClass != nil,
		}) {
			if set {
				faults = append(faults, field.Forbidden(specPath.Child(child), "may only be used when `type` is 'LoadBalancer'"))
			}
		}
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		if _, err := netip.ParsePrefix(strings.TrimSpace(cidr)); err != nil {
			faults = append(faults, field.Invalid(ranges.Index(i), cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
		}
	}
	return faults
}

func validateTrafficPolicies(spec *corev1.ServiceSpec) field.ErrorList {
	var faults field.ErrorList
	external := specPath.Child("externalTrafficPolicy")
	if externallyReachable(spec) {
		faults = append(faults, oneOf(external, spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	} else if spec.ExternalTrafficPolicy != "" {
		faults = append(faults, field.Invalid(external, spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if spec.HealthCheckNodePort != 0 && !needsHealthCheckPort(spec) {
		faults = append(faults, field.Invalid(specPath.Child("healthCheckNodePort"), spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	if p := spec.InternalTrafficPolicy; p != nil {
		faults = append(faults, oneOf(specPath.Child("internalTrafficPolicy"), *p, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	if d := spec.TrafficDistribution; d != nil {
		faults = append(faults, oneOf(specPath.Child("trafficDistribution"), *d,
			corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	}
	return faults
}

// validateServiceUpdate: a cluster IP is for life, unless the Service was or becomes an ExternalName.
func validateServiceUpdate(s, old *corev1.Service) field.ErrorList {
	var faults field.ErrorList
	if needsHealthCheckPort(&s.Spec) && needsHealthCheckPort(&old.Spec) && s.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		faults = append(faults, field.Forbidden(specPath.Child("healthCheckNodePort"), "field is immutable"))
	}
	if was := old.Spec.LoadBalancerClass; old.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.Type == old.Spec.Type &&
		(was == nil) == (s.Spec.LoadBalancerClass == nil) && was != nil && *was != *s.Spec.LoadBalancerClass {
		faults = append(faults, field.Invalid(specPath.Child("loadBalancerClass"), *s.Spec.LoadBalancerClass, "may not change once set"))
	}
	return append(faults, clusterIPsUpdate(&s.Spec, &old.Spec)...)
}
