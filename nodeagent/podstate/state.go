package podstate

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
)

// State is what the runtime has of one pod.
type State struct {
	Sandboxes  []*runtimeapi.PodSandboxStatus // newest first
	Containers map[string][]*Instance         // by container name, newest first
}

// Instance is one container of the runtime: one start of a container of the pod.
type Instance struct {
	*runtimeapi.ContainerStatus
	SandboxID string
	// TerminationMessage is what an exited container left behind, by its terminationMessagePolicy.
	TerminationMessage string
}

// startErrorCode is the exit code of a container that could not be started, as containerd has it.
const startErrorCode = 128

// Running says whether the container's process runs.
func (i *Instance) Running() bool {
	return i != nil && i.State == runtimeapi.ContainerState_CONTAINER_RUNNING
}

// Exited says whether it has ended. A container that was created and never started has too: its
// start failed, or the agent died between the two calls, and then it is started anew the same way.
func (i *Instance) Exited() bool { return i != nil && !i.Running() }

// Code is the exit code.
func (i *Instance) Code() int32 {
	if i.State == runtimeapi.ContainerState_CONTAINER_CREATED {
		return startErrorCode
	}
	return i.ExitCode
}

// Ended is when an exited container ended.
func (i *Instance) Ended() time.Time {
	return time.Unix(0, max(i.FinishedAt, i.CreatedAt))
}

// backOff is the delay that this instance had to wait for.
func (i *Instance) backOff() time.Duration {
	n, _ := strconv.ParseInt(i.Annotations[podspec.AnnotationBackOff], 10, 64) // absent: none
	return time.Duration(n) * time.Second
}

// Sort puts the newest first, where the accessors expect it.
func (s *State) Sort() {
	slices.SortFunc(s.Sandboxes, func(a, b *runtimeapi.PodSandboxStatus) int {
		return cmp.Or(cmp.Compare(b.GetMetadata().GetAttempt(), a.GetMetadata().GetAttempt()), cmp.Compare(b.CreatedAt, a.CreatedAt))
	})
	for _, list := range s.Containers {
		slices.SortFunc(list, func(a, b *Instance) int {
			return cmp.Or(cmp.Compare(b.GetMetadata().GetAttempt(), a.GetMetadata().GetAttempt()), cmp.Compare(b.CreatedAt, a.CreatedAt))
		})
	}
}

// Sandbox is the newest sandbox if it is ready, or nil.
func (s *State) Sandbox() *runtimeapi.PodSandboxStatus {
	if len(s.Sandboxes) == 0 || s.Sandboxes[0].State != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil
	}
	return s.Sandboxes[0]
}

// Latest is the newest instance of a container, or nil.
func (s *State) Latest(name string) *Instance {
	if list := s.Containers[name]; len(list) > 0 {
		return list[0]
	}
	return nil
}

// latestIn is the newest instance if it is in the current sandbox.
func (s *State) latestIn(sandbox *runtimeapi.PodSandboxStatus, name string) *Instance {
	if in := s.Latest(name); in != nil && in.SandboxID == sandbox.GetId() {
		return in
	}
	return nil
}

// AnyRunning says whether any container runs.
func (s *State) AnyRunning() bool {
	for _, list := range s.Containers {
		if slices.ContainsFunc(list, (*Instance).Running) {
			return true
		}
	}
	return false
}

// PodIPs are the addresses of the ready sandbox; pods on the host's network have the host's.
func (s *State) PodIPs(pod *corev1.Pod, hostIPs []string) []string {
	sandbox := s.Sandbox()
	switch {
	case sandbox == nil:
		return nil
	case pod.Spec.HostNetwork:
		return hostIPs
	case sandbox.GetNetwork().GetIp() == "":
		return nil
	}
	ips := []string{sandbox.Network.Ip}
	for _, ip := range sandbox.Network.AdditionalIps {
		ips = append(ips, ip.Ip)
	}
	return ips
}

// IsSidecar says whether an init container keeps running beside the main ones.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
