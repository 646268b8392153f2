package apiserver

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kubernetesName is the Service, in namespace default, by which pods find the API.
const kubernetesName = "kubernetes"

// bootstrapKubernetesService keeps the Service, and takes this server's place among its endpoints (serverlease.go).
func (s *Server) bootstrapKubernetesService(ctx context.Context) error {
	if err := s.bootstrapServiceCIDR(ctx); err != nil {
		return err
	}
	if err := s.ensure(ctx, metav1.NamespaceDefault, s.kubernetesService(), nil); err != nil {
		return err
	}
	if len(s.config.ClusterDNS) > 0 {
		if err := s.ensure(ctx, metav1.NamespaceSystem, dnsService(s.config.ClusterDNS), nil); err != nil {
			return err
		}
	}
	return s.takePlace(ctx)
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
