package apiserver

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kubernetesName is the Service, in namespace default, by which pods find the API.
const kubernetesName = "kubernetes"

// bootstrapKubernetesService keeps the Service and this server's place among its endpoints.
func (s *Server) bootstrapKubernetesService(ctx context.Context) error {
	if err := s.bootstrapServiceCIDR(ctx); err != nil {
		return err
	}
	if err := s.ensure(ctx, metav1.NamespaceDefault, s.kubernetesService(), nil); err != nil {
		return err
	}
	if s.config.ClusterDNS.IsValid() {
		if err := s.ensure(ctx, metav1.NamespaceSystem, dnsService(s.config.ClusterDNS.String()), nil); err != nil {
			return err
		}
	}
	if !reachable(s.config.AdvertiseAddress) {
		return nil
	}
	if err := s.ensure(ctx, metav1.NamespaceDefault, s.kubernetesEndpoints(), s.fitEndpoints); err != nil {
		return err
	}
	return s.ensure(ctx, metav1.NamespaceDefault, s.kubernetesSlice(), s.fitSlice)
}

// reachable says whether pods could reach an address of this machine: endpoints must not name others.
func reachable(address netip.Addr) bool {
	return address.IsValid() && !address.IsLoopback() && !address.IsUnspecified() && !address.IsLinkLocalUnicast()
}

// kubernetesService is how pods find the API: the first address of the service range.
func (s *Server) kubernetesService() *corev1.Service {
	address := s.config.ServiceCIDR.Masked().Addr().Next().String()
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{"provider": "kubernetes", "component": "apiserver"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:  address,
			ClusterIPs: []string{address},
			Ports: []corev1.ServicePort{{
				Name: "https", Port: 443, Protocol: corev1.ProtocolTCP,
				TargetPort: intstr.FromInt32(int32(s.config.AdvertisePort)),
			}},
		},
	}
}

// dnsService keeps the address of DNS from other Services, and says where it is to those who look. It has no endpoints, and
// belongs to no proxy: each node answers at the address by itself.
func dnsService(address string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-dns", Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{
				"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "service.kubernetes.io/service-proxy-name": "kontiki-dns",
			},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:  address,
			ClusterIPs: []string{address},
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)},
				{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(53)},
			},
		},
	}
}

// The endpoints of the Service are this server alone.
//
// Not yet: several servers. Each will hold a lease, and those whose lease is good are the endpoints.

func (s *Server) kubernetesEndpoints() *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Name: kubernetesName, Namespace: metav1.NamespaceDefault,
		Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
	}}
	s.fitEndpoints(e)
	return e
}

func (s *Server) fitEndpoints(obj runtime.Object) {
	obj.(*corev1.Endpoints).Subsets = []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: s.config.AdvertiseAddress.String()}},
		Ports:     []corev1.EndpointPort{{Name: "https", Port: int32(s.config.AdvertisePort), Protocol: corev1.ProtocolTCP}},
	}}
}

func (s *Server) kubernetesSlice() *discoveryv1.EndpointSlice {
	family := discoveryv1.AddressTypeIPv4
	if s.config.AdvertiseAddress.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesName},
		},
		AddressType: family,
	}
	s.fitSlice(slice)
	return slice
}

func (s *Server) fitSlice(obj runtime.Object) {
	slice := obj.(*discoveryv1.EndpointSlice)
	name, port, protocol, ready := "https", int32(s.config.AdvertisePort), corev1.ProtocolTCP, true
	slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	slice.Endpoints = []discoveryv1.Endpoint{{
		Addresses:  []string{s.config.AdvertiseAddress.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready},
	}}
}
