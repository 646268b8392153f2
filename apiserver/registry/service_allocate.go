package registry

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// serviceAllocator chooses cluster IPs and node ports. What it chooses becomes a claim in the
// transaction that writes the Service, so two Services can never hold the same one, and deleting a
// Service, or giving up a type, frees its claims in that very write.
type serviceAllocator Options

// serviceClaims are the addresses and ports that s holds.
func serviceClaims(s *corev1.Service) []string {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	var claims []string
	for _, ip := range s.Spec.ClusterIPs {
		if ip != "" && ip != corev1.ClusterIPNone {
			claims = append(claims, clusterIPClaim(ip))
		}
	}
	for _, p := range s.Spec.Ports {
		if claim := nodePortClaim(p.NodePort); p.NodePort != 0 && !slices.Contains(claims, claim) {
			claims = append(claims, claim) // TCP and UDP of one Service may share a node port
		}
	}
	if s.Spec.HealthCheckNodePort != 0 {
		claims = append(claims, nodePortClaim(s.Spec.HealthCheckNodePort))
	}
	return claims
}

// clusterIPClaim is the same for every spelling of an address.
func clusterIPClaim(ip string) string {
	if addr, err := netip.ParseAddr(ip); err == nil {
		ip = addr.String()
	}
	return clusterIPClaims + ip
}

const clusterIPClaims = "/kontiki/claims/clusterip/"

func nodePortClaim(port int32) string        { return "/kontiki/claims/nodeport/" + strconv.Itoa(int(port)) }
func (a serviceAllocator) first() netip.Addr { return a.ServiceCIDR.Addr().Next() }

// allocate fills in what the Service needs and checks what the user has chosen.
func (a serviceAllocator) allocate(ctx context.Context, obj, old runtime.Object, taken func(string) bool) error {
	s := obj.(*corev1.Service)
	var mine []string
	if old != nil {
		mine = serviceClaims(old.(*corev1.Service))
	}
	others := func(claim string) bool { return !slices.Contains(mine, claim) && taken(claim) }

	if !needsClusterIP(&s.Spec) {
		return nil
	}
	faults := a.clusterIPs(ctx, s, mine, others)
	faults = append(faults, a.nodePorts(s, mine, others)...)
	if len(faults) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, faults)
	}
	return nil
}

// clusterIPs has an address for each family of s, in their order.
func (a serviceAllocator) clusterIPs(ctx context.Context, s *corev1.Service, mine []string, taken func(string) bool) field.ErrorList {
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		s.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
		return nil
	}
	if s.Spec.ClusterIP == "" {
		s.Spec.ClusterIPs = nil
	}
	families := s.Spec.IPFamilies
	if len(families) == 0 { // an object from before there were any
		families = []corev1.IPFamily{a.family()}
	}
	for i, family := range families {
		ranges := a.rangesOf(ctx, family)
		if i < len(s.Spec.ClusterIPs) {
			ip := s.Spec.ClusterIPs[i]
			if why := a.refuseClusterIP(s, ip, ranges, mine, taken); why != "" {
				return field.ErrorList{field.Invalid(clusterIPsPath, s.Spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: %s", ip, why))}
			}
			continue
		}
		ip, ok := "", false
		for n := 0; n < len(ranges) && !ok; n++ {
			ip, ok = pickClusterIP(ranges[n], taken)
		}
		if !ok {
			return field.ErrorList{field.InternalError(clusterIPsPath, fmt.Errorf("failed to allocate a serviceIP: range is full"))}
		}
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, ip)
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	return nil
}

// refuseClusterIP says why the address that the user has chosen cannot be had, or "".
func (a serviceAllocator) refuseClusterIP(s *corev1.Service, text string, ranges []netip.Prefix, mine []string, taken func(string) bool) string {
	if slices.Contains(mine, clusterIPClaim(text)) {
		return ""
	}
	ip, err := netip.ParseAddr(text)
	cidr, ok := rangeOf(ranges, ip)
	if !cidr.IsValid() && len(ranges) > 0 {
		cidr = ranges[0] // for the message
	}
	switch {
	case err != nil || !ok:
		return fmt.Sprintf("the provided IP (%s) is not in the valid range. The range of valid IPs is %v", text, cidr)
	case taken(clusterIPClaim(text)), ip == a.first() && !(s.Namespace == "default" && s.Name == "kubernetes"):
		return "provided IP is already allocated"
	}
	return ""
}

// pickClusterIP starts at a random address, so that an address is not given out again right after
// it was freed, and takes the next free one. The first address is never picked.
func pickClusterIP(cidr netip.Prefix, taken func(string) bool) (string, bool) {
	if !cidr.IsValid() {
		return "", false
	}
	low, high := cidr.Addr().Next().Next(), lastAddress(cidr) // high is the broadcast address, not given out
	size := int64(1 << 20)                                    // enough of an IPv6 range
	if bits := cidr.Addr().BitLen() - cidr.Bits(); bits < 20 {
		size = int64(1)<<bits - 3
	}
	if size <= 0 {
		return "", false
	}
	ip := addressAfter(low, big.NewInt(rand.Int64N(size)))
	for range size {
		if !taken(clusterIPClaim(ip.String())) {
			return ip.String(), true
		}
		if ip = ip.Next(); ip == high || !cidr.Contains(ip) {
			ip = low
		}
	}
	return "", false
}

func lastAddress(p netip.Prefix) netip.Addr {
	size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
	return addressAfter(p.Masked().Addr(), size.Sub(size, big.NewInt(1)))
}

// nodePorts fills in spec.ports[*].nodePort and healthCheckNodePort. Ports that differ only in
// their protocol get the same node port, as in Kubernetes.
func (a serviceAllocator) nodePorts(s *corev1.Service, mine []string, taken func(string) bool) field.ErrorList {
	var faults field.ErrorList
	held := map[int32]bool{}
	check := func(path *field.Path, port int32) {
		held[port] = true
		if why := a.refuseNodePort(port, mine, taken); why != "" {
			faults = append(faults, field.Invalid(path, port, why))
		}
	}
	for i, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			check(field.NewPath("spec", "ports").Index(i).Child("nodePort"), p.NodePort)
		}
	}
	if s.Spec.HealthCheckNodePort != 0 {
		check(field.NewPath("spec", "healthCheckNodePort"), s.Spec.HealthCheckNodePort)
	}
	pick := func(path *field.Path, into *int32) {
		port, ok := a.pickNodePort(func(port int32) bool { return held[port] || taken(nodePortClaim(port)) })
		if !ok {
			faults = append(faults, field.InternalError(path, fmt.Errorf("failed to allocate a nodePort: range is full")))
			return
		}
		*into, held[port] = port, true
	}
	if needsNodePort(&s.Spec) {
		byPort := map[int32]int32{}
		for i := range s.Spec.Ports {
			p := &s.Spec.Ports[i]
			if p.NodePort == 0 {
				p.NodePort = byPort[p.Port]
			}
			if p.NodePort == 0 {
				pick(field.NewPath("spec", "ports").Index(i).Child("nodePort"), &p.NodePort)
			}
			byPort[p.Port] = p.NodePort
		}
	}
	if needsHealthCheckPort(&s.Spec) && s.Spec.HealthCheckNodePort == 0 {
		pick(field.NewPath("spec", "healthCheckNodePort"), &s.Spec.HealthCheckNodePort)
	}
	return faults
}

func (a serviceAllocator) refuseNodePort(port int32, mine []string, taken func(string) bool) string {
	switch {
	case slices.Contains(mine, nodePortClaim(port)):
		return ""
	case port < a.NodePorts[0] || port > a.NodePorts[1]:
		return fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", a.NodePorts[0], a.NodePorts[1])
	case taken(nodePortClaim(port)):
		return "provided port is already allocated"
	}
	return ""
}

func (a serviceAllocator) pickNodePort(taken func(int32) bool) (int32, bool) {
	size := a.NodePorts[1] - a.NodePorts[0] + 1
	start := rand.Int32N(size)
	for i := range size {
		if port := a.NodePorts[0] + (start+i)%size; !taken(port) {
			return port, true
		}
	}
	return 0, false
}
