package network

import (
	"fmt"

	"github.com/containernetworking/cni/libcni"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The annotations of a pod that bound its traffic, in bits per second (Kubernetes, "Support traffic shaping").
const (
	ingressAnnotation = "kubernetes.io/ingress-bandwidth" // to the pod
	egressAnnotation  = "kubernetes.io/egress-bandwidth"  // from the pod
)

// The rates that Kubernetes takes.
var minBandwidth, maxBandwidth = resource.MustParse("1k"), resource.MustParse("1P")

// minBurstBits lets a whole segment of the kernel's largest size pass at once, whatever the rate.
const minBurstBits = 1 << 20

// The names of capabilities (CNI conventions, "Dynamic Plugin specific fields").
const (
	capPortMappings = "portMappings"
	capBandwidth    = "bandwidth"
	capDNS          = "dns"
)

// PortMapping is one host port of a pod, in the form the portmap plugin reads.
type PortMapping struct {
	HostPort      int32  `json:"hostPort"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"` // tcp, udp or sctp
	HostIP        string `json:"hostIP,omitempty"`
}

// DNS is the pod's resolver configuration, for plugins that want to know it.
type DNS struct {
	Servers  []string `json:"servers,omitempty"`
	Searches []string `json:"searches,omitempty"`
	Options  []string `json:"options,omitempty"`
}

// bandwidth is the form that the bandwidth plugin reads: bits per second, and bits that may be sent at once.
type bandwidth struct {
	IngressRate  uint64 `json:"ingressRate,omitempty"`
	IngressBurst uint64 `json:"ingressBurst,omitempty"`
	EgressRate   uint64 `json:"egressRate,omitempty"`
	EgressBurst  uint64 `json:"egressBurst,omitempty"`
}

// bandwidthOf reads a pod's annotations; nil without one.
func bandwidthOf(annotations map[string]string) (*bandwidth, error) {
	in, err := rate(annotations, ingressAnnotation)
	if err != nil {
		return nil, err
	}
	out, err := rate(annotations, egressAnnotation)
	if err != nil {
		return nil, err
	}
	if in == 0 && out == 0 {
		return nil, nil
	}
	b := &bandwidth{IngressRate: in, EgressRate: out}
	if in > 0 {
		b.IngressBurst = max(in/8, minBurstBits)
	}
	if out > 0 {
		b.EgressBurst = max(out/8, minBurstBits)
	}
	return b, nil
}

func rate(annotations map[string]string, name string) (uint64, error) {
	text, ok := annotations[name]
	if !ok {
		return 0, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%w: annotation %s: %q: %w", ErrBandwidth, name, text, err)
	}
	if q.Cmp(minBandwidth) < 0 || q.Cmp(maxBandwidth) > 0 {
		return 0, fmt.Errorf("%w: annotation %s: %s is not from 1k to 1P bits per second", ErrBandwidth, name, text)
	}
	return uint64(q.Value()), nil
}

// runtimeConf is what plugins are told about a pod.
func runtimeConf(pod Pod) (*libcni.RuntimeConf, error) {
	capabilities := map[string]any{}
	if len(pod.Ports) > 0 {
		capabilities[capPortMappings] = pod.Ports
	}
	limits, err := bandwidthOf(pod.Annotations)
	if err != nil {
		return nil, err
	}
	if limits != nil {
		capabilities[capBandwidth] = limits
	}
	if d := pod.DNS; len(d.Servers)+len(d.Searches)+len(d.Options) > 0 {
		capabilities[capDNS] = d
	}
	return &libcni.RuntimeConf{
		ContainerID: pod.ID, NetNS: pod.NetNS, IfName: ifName, CapabilityArgs: capabilities,
		// The argument names are Kubernetes' convention (containerd and CRI-O pass the same).
		Args: [][2]string{
			{"IgnoreUnknown", "1"},
			{"K8S_POD_NAMESPACE", pod.Namespace},
			{"K8S_POD_NAME", pod.Name},
			{"K8S_POD_INFRA_CONTAINER_ID", pod.ID},
			{"K8S_POD_UID", pod.UID},
		},
	}, nil
}
