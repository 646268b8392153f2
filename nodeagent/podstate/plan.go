package podstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/probe"
)

// Plan is what to do next for a pod. All of it may be done at once and in any order, except that
// nothing can start without a sandbox. Doing it, or a part of it, twice does no harm.
type Plan struct {
	// CreateSandbox asks for a new sandbox with this attempt number.
	CreateSandbox bool
	Attempt       uint32
	// StopSandboxes are sandboxes, and all in them, that were replaced or have died.
	StopSandboxes []string
	Start         []Start
	Kill          []Kill
	// Waiting says why a container does not run, for its status.
	Waiting map[string]Waiting
	// Wake is when the next decision will differ even if nothing happens; zero is never.
	Wake time.Time
	// Finished: all containers have ended for good.
	Finished bool
}

// Start is a container to start.
type Start struct {
	Container *corev1.Container
	Init      bool
	Attempt   uint32
	BackOff   time.Duration // the delay that was waited for, see nextBackOff
}

// Kill is a running container to stop.
type Kill struct {
	Instance  *Instance
	Container *corev1.Container // nil if the pod no longer has it
	Message   string            // of the Killing event
	// Grace is the container's own grace period in seconds, or nil for the pod's.
	Grace *int64
}

// Waiting is the reason and message of a waiting container. An empty reason is that it is being made.
type Waiting struct{ Reason, Message string }

// Reasons of waiting containers, as Kubernetes names them.
const (
	ReasonContainerCreating = "ContainerCreating"
	ReasonPodInitializing   = "PodInitializing"
	ReasonCrashLoopBackOff  = "CrashLoopBackOff"
)

// planner carries the arguments of one decision.
type planner struct {
	pod    *corev1.Pod
	state  *State
	probes func(containerID string) probe.Result
	now    time.Time
	plan   *Plan
}

// Next decides for a pod that shall run.
func Next(pod *corev1.Pod, state *State, probes func(containerID string) probe.Result, now time.Time) *Plan {
	p := &planner{pod, state, probes, now, &Plan{Waiting: map[string]Waiting{}}}
	p.sandboxes()
	if p.done() {
		p.drain("Stopping container %s")
		p.plan.Finished = !state.AnyRunning()
		return p.plan
	}
	if state.Sandbox() == nil {
		p.plan.CreateSandbox = true
		return p.plan
	}
	p.ephemeralContainers()
	if p.initContainers() {
		for i := range pod.Spec.Containers {
			p.container(&pod.Spec.Containers[i], false)
		}
	}
	return p.plan
}

// sandboxes plans the end of every sandbox but the current one.
func (p *planner) sandboxes() {
	current := p.state.Sandbox()
	for _, s := range p.state.Sandboxes {
		p.plan.Attempt = max(p.plan.Attempt, s.GetMetadata().GetAttempt()+1)
		if s == current {
			continue
		}
		for _, list := range p.state.Containers {
			for _, in := range list {
				if in.SandboxID == s.Id && in.Running() {
					p.plan.StopSandboxes = append(p.plan.StopSandboxes, s.Id)
				}
			}
		}
	}
}

// done says whether the pod's work is over: every main container has ended for good, or an init
// container has failed for good.
func (p *planner) done() bool {
	for i := range p.pod.Spec.InitContainers {
		c := &p.pod.Spec.InitContainers[i]
		if in := p.state.Latest(c.Name); !IsSidecar(c) && in.Exited() && in.Code() != 0 && !p.restarts(c, in, true) {
			return true
		}
	}
	for i := range p.pod.Spec.Containers {
		c := &p.pod.Spec.Containers[i]
		if in := p.state.Latest(c.Name); in == nil || in.Running() || p.restarts(c, in, false) {
			return false
		}
	}
	return len(p.pod.Spec.Containers) > 0
}

// restarts says whether an exited container is to be started again.
func (p *planner) restarts(c *corev1.Container, in *Instance, init bool) bool {
	policy := p.pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return in.Code() != 0
	}
	return !init || IsSidecar(c) || in.Code() != 0
}

// container plans one main container or sidecar.
func (p *planner) container(c *corev1.Container, init bool) {
	in := p.state.Latest(c.Name)
	switch {
	case in.Running():
		p.running(c, in)
	case in == nil:
		p.start(c, init, 0)
	case p.restarts(c, in, init):
		p.restart(c, in, init)
	}
}

// running plans the end of a container that failed a probe or whose spec was changed.
func (p *planner) running(c *corev1.Container, in *Instance) {
	r := p.probes(in.Id)
	switch {
	case r.LivenessFailed:
		p.kill(c, in, "Container %s failed liveness probe, will be restarted", c.LivenessProbe)
	case r.StartupFailed:
		p.kill(c, in, "Container %s failed startup probe, will be restarted", c.StartupProbe)
	case in.Annotations[podspec.AnnotationHash] != podspec.Hash(c):
		p.kill(c, in, "Container %s definition changed, will be restarted", nil)
	}
}

func (p *planner) kill(c *corev1.Container, in *Instance, format string, cause *corev1.Probe) {
	k := Kill{Instance: in, Container: c, Message: fmt.Sprintf(format, c.Name)}
	if cause != nil {
		k.Grace = cause.TerminationGracePeriodSeconds
	}
	p.plan.Kill = append(p.plan.Kill, k)
}

// restart plans the next instance after in, once its back-off is over.
func (p *planner) restart(c *corev1.Container, in *Instance, init bool) {
	delay := nextBackOff(in)
	if in.Annotations[podspec.AnnotationHash] != podspec.Hash(c) {
		delay = 0 // another image: another story
	}
	due := in.Ended().Add(delay)
	if due.After(p.now) {
		if p.plan.Wake.IsZero() || due.Before(p.plan.Wake) {
			p.plan.Wake = due
		}
		p.plan.Waiting[c.Name] = Waiting{ReasonCrashLoopBackOff, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			delay, c.Name, p.pod.Name, p.pod.Namespace, p.pod.UID)}
		return
	}
	p.start(c, init, delay)
}

func (p *planner) start(c *corev1.Container, init bool, delay time.Duration) {
	p.plan.Start = append(p.plan.Start, Start{Container: c, Init: init, Attempt: p.attempt(c.Name), BackOff: delay})
}

// attempt is the restart count of the next instance. When the runtime has lost all instances (it was
// reinstalled, say) the count goes on from what the API knows.
func (p *planner) attempt(name string) uint32 {
	if in := p.state.Latest(name); in != nil {
		return in.GetMetadata().GetAttempt() + 1
	}
	for _, list := range [][]corev1.ContainerStatus{p.pod.Status.InitContainerStatuses, p.pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name && list[i].ContainerID != "" {
				return uint32(list[i].RestartCount) + 1
			}
		}
	}
	return 0
}
