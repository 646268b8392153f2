package nodeagent

import (
	"cmp"
	"context"
	"net"
	"runtime"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxImages bounds the image list of a Node's status, as the kubelet's nodeStatusMaxImages does.
const maxImages = 50

// status is the Node's status now. Conditions of others are kept.
func (n *nodeReporter) status(ctx context.Context, node *corev1.Node) corev1.NodeStatus {
	s := *node.Status.DeepCopy()
	s.Capacity, s.Allocatable = n.a.machine.capacity(), n.a.machine.allocatable()
	s.Addresses = nil
	for _, ip := range n.a.cfg.NodeIPs {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	if name := cmp.Or(hostname(), n.a.cfg.NodeName); name != "" {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = n.a.port()
	s.NodeInfo = n.info(ctx)
	s.Conditions = n.conditions(ctx, s.Conditions)
	s.Images = n.images(ctx)
	return s
}

// port is where the agent's server listens.
func (a *Agent) port() int32 {
	address := a.cfg.Address
	if a.cfg.Listen != nil {
		address = a.cfg.Listen.Addr().String()
	}
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.ParseInt(text, 10, 32)
	return int32(port)
}

func (n *nodeReporter) info(ctx context.Context) corev1.NodeSystemInfo {
	m := n.a.machine
	info := corev1.NodeSystemInfo{
		MachineID: m.machineID, SystemUUID: m.systemUUID, BootID: m.bootID, KernelVersion: m.kernel, OSImage: m.osImage,
		KubeletVersion: n.a.cfg.Version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
	}
	if v, err := n.a.cri.Version(ctx, &runtimeapi.VersionRequest{}); err == nil {
		info.ContainerRuntimeVersion = v.RuntimeName + "://" + v.RuntimeVersion
	}
	return info
}

// conditions computes the agent's conditions. The time of transition stays while the status stays.
func (n *nodeReporter) conditions(ctx context.Context, old []corev1.NodeCondition) []corev1.NodeCondition {
	m := n.a.machine
	computed := []corev1.NodeCondition{
		pressure(corev1.NodeMemoryPressure, m.memoryPressure(), "KubeletHasInsufficientMemory", "KubeletHasSufficientMemory",
			"kubelet has insufficient memory available", "kubelet has sufficient memory available"),
		pressure(corev1.NodeDiskPressure, m.diskPressure(), "KubeletHasDiskPressure", "KubeletHasNoDiskPressure",
			"kubelet has disk pressure", "kubelet has no disk pressure"),
		pressure(corev1.NodePIDPressure, m.pidPressure(), "KubeletHasInsufficientPID", "KubeletHasSufficientPID",
			"kubelet has insufficient PID available", "kubelet has sufficient PID available"),
		n.ready(ctx),
	}
	if c, ok := n.a.policyCondition(old); ok {
		computed = append(computed, c)
	}
	now := metav1.NewTime(time.Now()).Rfc3339Copy()
	out := slices.Clone(old)
	for _, c := range computed {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		i := slices.IndexFunc(out, func(o corev1.NodeCondition) bool { return o.Type == c.Type })
		if i < 0 {
			out = append(out, c)
			continue
		}
		if out[i].Status == c.Status {
			c.LastTransitionTime = out[i].LastTransitionTime
		}
		out[i] = c
	}
	return out
}

func pressure(t corev1.NodeConditionType, is bool, reasonIs, reasonNot, messageIs, messageNot string) corev1.NodeCondition {
	if is {
		return corev1.NodeCondition{Type: t, Status: corev1.ConditionTrue, Reason: reasonIs, Message: messageIs}
	}
	return corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: reasonNot, Message: messageNot}
}

// ready asks the runtime whether it and its network are.
func (n *nodeReporter) ready(ctx context.Context) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	status, err := n.a.cri.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "KubeletNotReady", "container runtime is down: "+err.Error()
		return c
	}
	for _, rc := range status.GetStatus().GetConditions() {
		if !rc.Status && (rc.Type == runtimeapi.RuntimeReady || rc.Type == runtimeapi.NetworkReady) {
			what := "container runtime"
			if rc.Type == runtimeapi.NetworkReady {
				what = "container runtime network"
			}
			c.Status, c.Reason = corev1.ConditionFalse, "KubeletNotReady"
			c.Message = what + " not ready: " + rc.Type + "=false reason:" + rc.Reason + " message:" + rc.Message
		}
	}
	return c
}

// images lists the largest images, which matter most to a scheduler that likes to find them.
func (n *nodeReporter) images(ctx context.Context) []corev1.ContainerImage {
	list, err := n.a.cri.images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil
	}
	slices.SortFunc(list.Images, func(a, b *runtimeapi.Image) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Id, b.Id))
	})
	if len(list.Images) > maxImages {
		list.Images = list.Images[:maxImages]
	}
	var out []corev1.ContainerImage
	for _, i := range list.Images {
		names := append(slices.Clone(i.RepoDigests), i.RepoTags...)
		slices.Sort(names)
		out = append(out, corev1.ContainerImage{Names: names, SizeBytes: int64(i.Size)})
	}
	return out
}
