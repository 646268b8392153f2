package apiserver

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// dnsService keeps the addresses of DNS from other Services, and says where it is to those who look. It has no endpoints, and
// belongs to no proxy: each node answers at the addresses by itself.
func dnsService(addresses []netip.Addr) *corev1.Service {
	var ips []string
	for _, a := range addresses {
		ips = append(ips, a.String())
	}
	policy := corev1.IPFamilyPolicySingleStack
	if len(ips) > 1 {
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-dns", Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{
				"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "service.kubernetes.io/service-proxy-name": "kontiki-dns",
			},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:      ips[0],
			ClusterIPs:     ips,
			IPFamilyPolicy: &policy,
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)},
				{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(53)},
			},
		},
	}
}
