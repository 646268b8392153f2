package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podCondition returns the condition of a type, or nil.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func podReady(pod *corev1.Pod) bool {
	ready := podCondition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// podReadySince is when the pod became ready; zero when it is not.
func podReadySince(pod *corev1.Pod) time.Time {
	ready := podCondition(pod, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// podAvailableIn says how long a ready pod still has to stay ready to count as available: zero or less when it is
// available. ok is false for a pod that is not ready.
func podAvailableIn(pod *corev1.Pod, minReadySeconds int32, now time.Time) (wait time.Duration, ok bool) {
	if !podReady(pod) {
		return 0, false
	}
	if minReadySeconds == 0 {
		return 0, true
	}
	since := podReadySince(pod)
	if since.IsZero() {
		return 0, false
	}
	return since.Add(time.Duration(minReadySeconds) * time.Second).Sub(now), true
}

// podTerminal: the pod has ended for good and will not run again.
func podTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// podActive: the pod runs or will, and nobody has asked it to go.
func podActive(pod *corev1.Pod) bool {
	return !podTerminal(pod) && pod.DeletionTimestamp == nil
}

func podRestarts(pod *corev1.Pod) (most int32) {
	for i := range pod.Status.ContainerStatuses {
		most = max(most, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}
