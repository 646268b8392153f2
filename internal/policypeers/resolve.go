package policypeers

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Pods is a view of the cluster: its namespaces, and the pods of each.
type Pods interface {
	Namespaces() []*corev1.Namespace
	PodsOf(namespace string) []*corev1.Pod
}

// Group is pods of a selection that can share a slice: their addresses are of one family, and their ports have the same
// numbers.
type Group struct {
	IPv6      bool
	Ports     []discoveryv1.EndpointPort // those that the selection names and these pods have
	Addresses []netip.Addr               // in order, each once
}

// AddressType is the family in the words of slices.
func (g *Group) AddressType() discoveryv1.AddressType {
	if g.IPv6 {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

// ID tells groups of a selection apart.
func (g *Group) ID() string { return groupID(g.IPv6, g.Ports) }

func groupID(isIPv6 bool, ports []discoveryv1.EndpointPort) string {
	id := "IPv4"
	if isIPv6 {
		id = "IPv6"
	}
	for _, p := range ports {
		id += fmt.Sprintf(" %s/%s=%d", ptr.Deref(p.Protocol, ""), ptr.Deref(p.Name, ""), ptr.Deref(p.Port, 0))
	}
	return id
}

// Counts says whether a pod has addresses of its own, now. One that has ended may have left them to another, and one on its
// node's network is the node.
func Counts(pod *corev1.Pod) bool {
	return !pod.Spec.HostNetwork && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && len(pod.Status.PodIPs) > 0
}

// Selects says whether a pod is selected by its labels and those of its namespace.
func (s *Selection) Selects(pod *corev1.Pod, namespace labels.Set) bool {
	return len(s.peers) == 0 || slices.ContainsFunc(s.peers, func(p peer) bool {
		return p.inNamespace(s.namespace, pod.Namespace, namespace) && p.pods.Matches(labels.Set(pod.Labels))
	})
}

// CrossesNamespaces says whether the labels of namespaces matter.
func (s *Selection) CrossesNamespaces() bool {
	return len(s.peers) == 0 || slices.ContainsFunc(s.peers, func(p peer) bool { return p.namespaces != nil })
}

// Namespace is the policy's.
func (s *Selection) Namespace() string { return s.namespace }

func (p peer) inNamespace(own, name string, set labels.Set) bool {
	if p.namespaces == nil {
		return name == own
	}
	return p.namespaces.Matches(set)
}

// Resolve finds the pods of a selection, in groups in the order of their IDs.
func (s *Selection) Resolve(cluster Pods) []Group {
	groups := map[string]*Group{}
	for _, namespace := range cluster.Namespaces() {
		set := labels.Set(namespace.Labels)
		if len(s.peers) > 0 && !slices.ContainsFunc(s.peers, func(p peer) bool { return p.inNamespace(s.namespace, namespace.Name, set) }) {
			continue
		}
		for _, pod := range cluster.PodsOf(namespace.Name) {
			if Counts(pod) && s.Selects(pod, set) {
				s.add(groups, pod)
			}
		}
	}
	out := make([]Group, 0, len(groups))
	for _, g := range groups {
		slices.SortFunc(g.Addresses, netip.Addr.Compare)
		g.Addresses = slices.Compact(g.Addresses)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.ID(), b.ID()) })
	return out
}

// add puts a pod's addresses into groups.
func (s *Selection) add(groups map[string]*Group, pod *corev1.Pod) {
	ports := s.portsOf(pod)
	if len(s.peers) == 0 && len(ports) == 0 {
		return // of all pods, only ports are asked for
	}
	for _, ip := range pod.Status.PodIPs {
		address, err := netip.ParseAddr(ip.IP)
		if err != nil {
			continue
		}
		id := groupID(address.Is6(), ports)
		if groups[id] == nil {
			groups[id] = &Group{IPv6: address.Is6(), Ports: ports}
		}
		groups[id].Addresses = append(groups[id].Addresses, address)
	}
}

// portsOf are the ports of a pod that the selection names.
func (s *Selection) portsOf(pod *corev1.Pod) (ports []discoveryv1.EndpointPort) {
	for _, name := range s.ports {
		if number := NumberOf(pod, name); number != 0 {
			ports = append(ports, discoveryv1.EndpointPort{Name: ptr.To(name.Name), Protocol: ptr.To(name.Protocol), Port: ptr.To(number)})
		}
	}
	return ports
}

// NumberOf is the port that a pod's containers have under a name, 0 for none. Sidecars' ports count.
func NumberOf(pod *corev1.Pod, name PortName) int32 {
	containers := pod.Spec.Containers
	for i := range pod.Spec.InitContainers {
		if ptr.Deref(pod.Spec.InitContainers[i].RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			containers = append(containers[:len(containers):len(containers)], pod.Spec.InitContainers[i])
		}
	}
	for i := range containers {
		for _, p := range containers[i].Ports {
			if p.Name == name.Name && cmp.Or(p.Protocol, corev1.ProtocolTCP) == name.Protocol {
				return p.ContainerPort
			}
		}
	}
	return 0
}
