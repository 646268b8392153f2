package proxy

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// frontend is one port of a Service in one family: where clients send to.
type frontend struct {
	service  string // "namespace/name"
	protocol string // "tcp", "udp" or "sctp"
	port     uint16

	cluster  netip.Addr   // the cluster IP; there is always one
	external []netip.Addr // external IPs, open to all
	balanced []netip.Addr // those of the load balancer, open to sources
	nodePort uint16       // 0: none
	sources  []netip.Prefix

	externalLocal, internalLocal bool // traffic policies
	affinity                     time.Duration
}

// handled says whether a Service is this proxy's business.
func handled(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone && !ofOthers(s)
}

// ofOthers says whether a Service or a slice has a label that keeps kube-proxy off it: it is another proxy's, or there are to be
// no rules for it at all. Any value counts, as in kube-proxy's own selector.
func ofOthers(o metav1.Object) bool {
	_, another := o.GetLabels()["service.kubernetes.io/service-proxy-name"]
	_, headless := o.GetLabels()[corev1.IsHeadlessService]
	return another || headless
}

// frontendOf describes a port of a Service in one family; ok is false if the Service has no address of that family.
func frontendOf(s *corev1.Service, port corev1.ServicePort, isIPv6 bool) (f frontend, ok bool) {
	ips := s.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{s.Spec.ClusterIP}
	}
	cluster := ofFamily(ips, isIPv6)
	if len(cluster) == 0 {
		return frontend{}, false
	}
	f = frontend{
		service: s.Namespace + "/" + s.Name, protocol: strings.ToLower(string(port.Protocol)), port: uint16(port.Port),
		cluster: cluster[0], external: ofFamily(s.Spec.ExternalIPs, isIPv6), nodePort: uint16(port.NodePort),
		externalLocal: s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		internalLocal: ptr.Deref(s.Spec.InternalTrafficPolicy, "") == corev1.ServiceInternalTrafficPolicyLocal,
	}
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if ptr.Deref(ingress.IPMode, corev1.LoadBalancerIPModeVIP) == corev1.LoadBalancerIPModeVIP {
			f.balanced = append(f.balanced, ofFamily([]string{ingress.IP}, isIPv6)...)
		}
	}
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		if prefix, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && prefix.Addr().Is6() == isIPv6 {
			f.sources = append(f.sources, prefix.Masked())
		}
	}
	if len(s.Spec.LoadBalancerSourceRanges) > 0 && len(f.sources) == 0 {
		// Ranges of the other family alone let nobody of this one in.
		f.balanced = nil
	}
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		seconds := int32(corev1.DefaultClientIPServiceAffinitySeconds)
		if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
			seconds = ptr.Deref(c.ClientIP.TimeoutSeconds, seconds)
		}
		f.affinity = time.Duration(seconds) * time.Second
	}
	return f, true
}

func ofFamily(texts []string, isIPv6 bool) (addresses []netip.Addr) {
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil && address.Is6() == isIPv6 {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// name is the frontend's part of the names of its chains.
func (f *frontend) name() string { return fmt.Sprintf("%s/%s/%d", f.service, f.protocol, f.port) }

// isExternal says whether anybody outside the cluster may come.
func (f *frontend) isExternal() bool {
	return f.nodePort != 0 || len(f.external) > 0 || len(f.balanced) > 0
}
