package registry

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var podColumns = columns(
	[]string{"Name", "Ready", "Status", "Restarts", "Age"},
	"IP", "Node", "Nominated Node", "Readiness Gates")

func podRow(p *corev1.Pod, now time.Time) []any {
	s := summarize(p)
	return []any{
		p.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.status, s.restartsCell(now), age(&p.ObjectMeta, now),
		orElse(podIP(p), none), orElse(p.Spec.NodeName, none), orElse(p.Status.NominatedNodeName, none), readinessGates(p),
	}
}

// podSummary is a pod in the words of kubectl get: one status made of the phase and of what the
// containers wait for or ended with.
type podSummary struct {
	ready, total int // containers, sidecars included
	status       string
	restarts     int
	lastRestart  metav1.Time
}

func (s *podSummary) restartsCell(now time.Time) string {
	if s.restarts == 0 || s.lastRestart.IsZero() {
		return strconv.Itoa(s.restarts)
	}
	return fmt.Sprintf("%d (%s ago)", s.restarts, since(s.lastRestart, now))
}

func summarize(p *corev1.Pod) podSummary {
	s := podSummary{status: orElse(p.Status.Reason, string(p.Status.Phase)), total: len(p.Spec.Containers)}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.status = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			s.total++
		}
	}
	if waiting := s.initContainers(p, sidecars); !waiting || hasCondition(p, corev1.PodInitialized) {
		s.containers(p, sidecars)
	}
	switch {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		s.status = "Unknown"
	case p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
		s.status = "Terminating"
	}
	return s
}

// initContainers looks for the first init container that is not done, and reports whether there is one.
func (s *podSummary) initContainers(p *corev1.Pod, sidecars map[string]bool) (waiting bool) {
	for i, c := range p.Status.InitContainerStatuses {
		s.count(c)
		ended := c.State.Terminated
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.status = "Init:" + endReason(ended)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.status = "Init:" + c.State.Waiting.Reason
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

// containers: the status is the reason of the first container that has one. Restarts of init
// containers no longer count, but for those of sidecars.
func (s *podSummary) containers(p *corev1.Pod, sidecars map[string]bool) {
	s.restarts, s.lastRestart = 0, metav1.Time{}
	for _, c := range p.Status.InitContainerStatuses {
		if sidecars[c.Name] {
			s.count(c)
		}
	}
	running, failure := false, ""
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := p.Status.ContainerStatuses[i]
		s.count(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.status = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.status = endReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failure = s.status
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.status != "Completed" {
		return
	}
	switch { // one container has completed; what of the others?
	case running && hasCondition(p, corev1.PodReady):
		s.status = "Running"
	case failure != "":
		s.status = failure
	case running:
		s.status = "NotReady"
	}
}

func (s *podSummary) count(c corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if last := c.LastTerminationState.Terminated; last != nil && s.lastRestart.Before(&last.FinishedAt) {
		s.lastRestart = last.FinishedAt
	}
}

func endReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func hasCondition(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func readinessGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return none
	}
	passed := 0
	for _, gate := range p.Spec.ReadinessGates {
		if hasCondition(p, gate.ConditionType) {
			passed++
		}
	}
	return fmt.Sprintf("%d/%d", passed, len(p.Spec.ReadinessGates))
}
