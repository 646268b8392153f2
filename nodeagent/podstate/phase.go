package podstate

import corev1 "k8s.io/api/core/v1"

// phase sums a pod up from its container statuses, by the rules of the Pod Lifecycle page. terminal
// says that nothing will be started any more.
func phase(pod *corev1.Pod, status *corev1.PodStatus, terminal bool) corev1.PodPhase {
	if p, ok := initPhase(pod, status); ok {
		return p
	}
	var waiting, running, stopped, failed int
	for i := range status.ContainerStatuses {
		s := &status.ContainerStatuses[i]
		ended := s.State.Terminated
		if s.State.Waiting != nil {
			ended = s.LastTerminationState.Terminated // waiting for its next start
		}
		switch {
		case s.State.Running != nil:
			running++
		case ended == nil:
			waiting++
		default:
			stopped++
			if ended.ExitCode != 0 {
				failed++
			}
		}
	}
	switch {
	case waiting > 0:
		if terminal {
			return corev1.PodFailed
		}
		return corev1.PodPending
	case running > 0:
		return corev1.PodRunning
	case stopped == 0:
		return corev1.PodPending
	case pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && !terminal:
		return corev1.PodRunning
	case failed == 0:
		return corev1.PodSucceeded
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever || terminal:
		return corev1.PodFailed
	}
	return corev1.PodRunning
}

// initPhase decides while regular init containers are not done; ok is false when they are.
func initPhase(pod *corev1.Pod, status *corev1.PodStatus) (p corev1.PodPhase, ok bool) {
	for i := range status.InitContainerStatuses {
		s := &status.InitContainerStatuses[i]
		if c := &pod.Spec.InitContainers[i]; IsSidecar(c) {
			if s.Started == nil || !*s.Started {
				if !anyBegan(status) {
					return corev1.PodPending, true
				}
			}
			continue
		}
		t := s.State.Terminated
		if s.State.Waiting != nil && s.LastTerminationState.Terminated != nil {
			t = s.LastTerminationState.Terminated
		}
		switch {
		case t != nil && t.ExitCode == 0:
		case t != nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
			return corev1.PodFailed, true
		case !anyBegan(status):
			return corev1.PodPending, true
		}
	}
	return "", false
}

// anyBegan says whether a main container has ever run.
func anyBegan(status *corev1.PodStatus) bool {
	for i := range status.ContainerStatuses {
		if s := &status.ContainerStatuses[i]; s.State.Waiting == nil || s.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}
