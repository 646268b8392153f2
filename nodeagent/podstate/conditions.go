package podstate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owned are the conditions that the node agent sets; all others are left as they are.
var owned = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
}

// conditions returns the pod's conditions: the agent's own ones computed, others kept. A time of
// transition stays while the status stays.
func conditions(pod *corev1.Pod, status *corev1.PodStatus, sandboxReady bool, now time.Time) []corev1.PodCondition {
	computed := []corev1.PodCondition{
		bare(corev1.PodReadyToStartContainers, sandboxReady && !over(status.Phase)),
		initialized(status),
		ready(pod, status),
		containersReady(pod, status),
		bare(corev1.PodScheduled, true),
	}
	var out []corev1.PodCondition
	for _, c := range computed {
		c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		c.ObservedGeneration = pod.Generation
		if old := condition(pod.Status.Conditions, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		out = append(out, c)
	}
	for _, c := range pod.Status.Conditions {
		if !slices.Contains(owned, c.Type) {
			out = append(out, c)
		}
	}
	return out
}

func over(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

func condition(list []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

func bare(t corev1.PodConditionType, ok bool) corev1.PodCondition {
	if ok {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse}
}

func initialized(status *corev1.PodStatus) corev1.PodCondition {
	c := bare(corev1.PodInitialized, true)
	if status.Phase == corev1.PodSucceeded {
		c.Reason = "PodCompleted"
		return c
	}
	var names []string
	for i := range status.InitContainerStatuses {
		if s := &status.InitContainerStatuses[i]; !s.Ready && !anyBegan(status) {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
		c.Message = fmt.Sprintf("containers with incomplete status: %v", names)
	}
	return c
}

func containersReady(pod *corev1.Pod, status *corev1.PodStatus) corev1.PodCondition {
	c := bare(corev1.ContainersReady, false)
	switch status.Phase {
	case corev1.PodSucceeded:
		c.Reason = "PodCompleted"
		return c
	case corev1.PodFailed:
		c.Reason = "PodFailed"
		return c
	}
	var unready []string
	for i := range status.InitContainerStatuses {
		if s := &status.InitContainerStatuses[i]; IsSidecar(&pod.Spec.InitContainers[i]) && !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	for i := range status.ContainerStatuses {
		if s := &status.ContainerStatuses[i]; !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	if len(unready) > 0 {
		c.Reason, c.Message = "ContainersNotReady", fmt.Sprintf("containers with unready status: %v", unready)
		return c
	}
	c.Status = corev1.ConditionTrue
	return c
}

// ready is containersReady and every readiness gate.
func ready(pod *corev1.Pod, status *corev1.PodStatus) corev1.PodCondition {
	c := containersReady(pod, status)
	c.Type = corev1.PodReady
	if c.Status != corev1.ConditionTrue {
		return c
	}
	for _, gate := range pod.Spec.ReadinessGates {
		got := condition(pod.Status.Conditions, gate.ConditionType)
		switch {
		case got == nil:
			c.Message = fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType)
		case got.Status != corev1.ConditionTrue:
			c.Message = fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, got.Status)
		default:
			continue
		}
		c.Status, c.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
		return c
	}
	return c
}
