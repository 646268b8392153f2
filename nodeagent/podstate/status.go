package podstate

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/probe"
)

// Observation is what a status is made from, beside the pod. The pod's own status must be the last one known to
// the API: times of transition and foreign conditions are kept from it.
type Observation struct {
	State       *State
	Probes      func(containerID string) probe.Result
	Waiting     map[string]Waiting // why containers that shall run do not
	HostIPs     []string
	RuntimeName string // the scheme of container ids
	// Terminal: nothing will be started any more. Reason and Message then say why the agent ended it.
	Terminal        bool
	Reason, Message string
	Now             time.Time
}

// Status is the pod's status for the API.
func Status(pod *corev1.Pod, o Observation) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.ObservedGeneration = pod.Generation
	s.QOSClass = podspec.QOSClass(pod)
	if s.StartTime == nil {
		start := metav1.NewTime(o.Now).Rfc3339Copy()
		s.StartTime = &start
	}
	s.InitContainerStatuses = o.containers(pod, pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	s.ContainerStatuses = o.containers(pod, pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	s.EphemeralContainerStatuses = o.containers(pod, podspec.EphemeralContainers(pod), pod.Status.EphemeralContainerStatuses, false)
	s.Phase = phase(pod, s, o.Terminal)
	if o.Reason != "" {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, o.Reason, o.Message
	}
	if over(pod.Status.Phase) {
		s.Phase = pod.Status.Phase // a pod that has finished stays so
	}
	o.addresses(pod, s)
	s.Conditions = conditions(pod, s, o.State.Sandbox() != nil, o.Now)
	return s
}

func (o *Observation) addresses(pod *corev1.Pod, s *corev1.PodStatus) {
	s.HostIPs = nil
	for _, ip := range o.HostIPs {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(o.HostIPs) > 0 {
		s.HostIP = o.HostIPs[0]
	}
	ips := o.State.PodIPs(pod, o.HostIPs)
	if len(ips) == 0 {
		return // a pod that has ended shows the address that it had
	}
	s.PodIP, s.PodIPs = ips[0], nil
	for _, ip := range ips {
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
	}
}

func (o *Observation) containers(pod *corev1.Pod, specs []corev1.Container, old []corev1.ContainerStatus, init bool) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range specs {
		var before *corev1.ContainerStatus
		for j := range old {
			if old[j].Name == specs[i].Name {
				before = &old[j]
			}
		}
		out = append(out, o.container(pod, &specs[i], before, init))
	}
	return out
}

// container is the status of one container from its instances.
func (o *Observation) container(pod *corev1.Pod, c *corev1.Container, before *corev1.ContainerStatus, init bool) corev1.ContainerStatus {
	list := o.State.Containers[c.Name]
	if len(list) == 0 {
		return o.withoutInstance(pod, c, before, init)
	}
	in := list[0]
	s := corev1.ContainerStatus{
		Name: c.Name, Image: in.GetImage().GetUserSpecifiedImage(), ImageID: in.ImageRef,
		ContainerID: o.RuntimeName + "://" + in.Id, RestartCount: int32(in.GetMetadata().GetAttempt()),
		State: o.state(in), Started: new(bool),
	}
	if s.Image == "" {
		s.Image = c.Image
	}
	if len(list) > 1 {
		s.LastTerminationState = o.state(list[1])
	}
	if w, ok := o.Waiting[c.Name]; ok && in.Exited() {
		w.Reason = cmp.Or(w.Reason, ReasonContainerCreating)
		s.LastTerminationState = s.State
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}}
	}
	if s.State.Running != nil {
		r := o.Probes(in.Id)
		*s.Started = r.Started
		s.Ready = r.Started && r.Ready
	}
	if init && !IsSidecar(c) {
		s.Ready = s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
	}
	return s
}

// withoutInstance is the status of a container that the runtime does not have: it has not been
// started yet, or the runtime has lost it and what the API knew remains.
func (o *Observation) withoutInstance(pod *corev1.Pod, c *corev1.Container, before *corev1.ContainerStatus, init bool) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(bool)}
	w := Waiting{Reason: ReasonContainerCreating}
	if len(pod.Spec.InitContainers) > 0 {
		w.Reason = ReasonPodInitializing
	}
	if given := o.Waiting[c.Name]; given.Reason != "" {
		w = given
	}
	s.State.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}
	if before == nil || before.ContainerID == "" {
		return s
	}
	s.RestartCount, s.LastTerminationState = before.RestartCount, before.LastTerminationState
	lost := before.State.Terminated
	if lost == nil && before.State.Running != nil {
		lost = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown",
			Message:     "The container could not be located when the pod was terminated",
			ContainerID: before.ContainerID,
		}
	}
	if lost == nil {
		return s
	}
	if init && !IsSidecar(c) || o.Terminal || over(pod.Status.Phase) {
		s.State = corev1.ContainerState{Terminated: lost}
		s.Ready = init && lost.ExitCode == 0
		s.ContainerID, s.ImageID = before.ContainerID, before.ImageID
		return s
	}
	s.LastTerminationState = corev1.ContainerState{Terminated: lost}
	return s
}

// state is an instance as the API describes it.
func (o *Observation) state(in *Instance) corev1.ContainerState {
	at := func(ns int64) metav1.Time { return metav1.NewTime(time.Unix(0, ns)).Rfc3339Copy() }
	if in.Running() {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(in.StartedAt)}}
	}
	t := &corev1.ContainerStateTerminated{
		ExitCode: in.Code(), Reason: in.Reason, Message: in.TerminationMessage,
		StartedAt: at(in.StartedAt), FinishedAt: at(max(in.FinishedAt, in.CreatedAt)),
		ContainerID: o.RuntimeName + "://" + in.Id,
	}
	if t.Message == "" {
		t.Message = in.Message
	}
	if t.Reason == "" {
		t.Reason = "Completed"
		if t.ExitCode != 0 {
			t.Reason = "Error"
		}
	}
	if in.State == runtimeapi.ContainerState_CONTAINER_CREATED {
		t.Reason = "StartError"
	}
	if in.StartedAt == 0 {
		t.StartedAt = at(in.CreatedAt)
	}
	return corev1.ContainerState{Terminated: t}
}
