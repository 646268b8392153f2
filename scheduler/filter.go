package scheduler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// A filter returns why the pod cannot run on the node, in the words that Kubernetes uses; nothing if it can.
type filter func(pod *podInfo, node *nodeInfo) []string

// nodeFilters in the order in which they are asked; the first that objects decides. Inter-pod affinity (interpod.go) comes
// after these, since it is the costly one.
var nodeFilters = []filter{fitsUnschedulable, fitsNodeName, fitsTaints, fitsNodeAffinity, fitsPorts, fitsResources}

// fitsUnschedulable: `kubectl cordon`, unless the pod tolerates it as DaemonSet pods do.
func fitsUnschedulable(pod *podInfo, node *nodeInfo) []string {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if !node.node.Spec.Unschedulable || scheduling.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &cordon, false) {
		return nil
	}
	return []string{"node(s) were unschedulable"}
}

func fitsNodeName(pod *podInfo, node *nodeInfo) []string {
	if pod.Spec.NodeName == "" || pod.Spec.NodeName == node.name {
		return nil
	}
	return []string{"node(s) didn't match the requested node name"}
}

// fitsTaints: PreferNoSchedule is a matter of score.
func fitsTaints(pod *podInfo, node *nodeInfo) []string {
	hard := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	taint, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Background(), node.node.Spec.Taints, pod.Spec.Tolerations, hard, false)
	if !untolerated {
		return nil
	}
	return []string{fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)}
}

// fitsNodeAffinity: nodeSelector and requiredDuringScheduling terms.
func fitsNodeAffinity(pod *podInfo, node *nodeInfo) []string {
	if match, err := nodeaffinity.GetRequiredNodeAffinity(pod.Pod).Match(node.node); match && err == nil {
		return nil
	}
	return []string{"node(s) didn't match Pod's node affinity/selector"}
}

func fitsPorts(pod *podInfo, node *nodeInfo) []string {
	if len(pod.ports) == 0 {
		return nil
	}
	for _, other := range node.pods {
		for _, port := range pod.ports {
			if slices.ContainsFunc(other.ports, port.conflicts) {
				return []string{"node(s) didn't have free ports for the requested pod ports"}
			}
		}
	}
	return nil
}

// fitsResources names everything that is short, so that the message is complete.
func fitsResources(pod *podInfo, node *nodeInfo) []string {
	var short []string
	if most, limited := node.allocatable[corev1.ResourcePods]; limited && int64(len(node.pods))+1 > most {
		short = append(short, "Too many pods")
	}
	for name, want := range pod.request {
		if want > 0 && want > node.allocatable[name]-node.used[name] {
			short = append(short, "Insufficient "+string(name))
		}
	}
	slices.Sort(short)
	return short
}

// hostPort is a port of the node that a container takes.
type hostPort struct {
	ip       string
	protocol corev1.Protocol
	port     int32
}

const anyAddress = "0.0.0.0"

// conflicts: the same port of the same protocol, on the same address or where either takes all addresses.
func (p hostPort) conflicts(other hostPort) bool {
	return p.port == other.port && p.protocol == other.protocol && (p.ip == other.ip || p.ip == anyAddress || other.ip == anyAddress)
}

// hostPorts collects those of all containers that run for as long as the pod does, sidecars included.
func hostPorts(pod *corev1.Pod) []hostPort {
	var ports []hostPort
	collect := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			port := hostPort{ip: p.HostIP, protocol: p.Protocol, port: p.HostPort}
			if port.ip == "" {
				port.ip = anyAddress
			}
			if port.protocol == "" {
				port.protocol = corev1.ProtocolTCP
			}
			ports = append(ports, port)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			collect(c)
		}
	}
	for i := range pod.Spec.Containers {
		collect(&pod.Spec.Containers[i])
	}
	return ports
}
