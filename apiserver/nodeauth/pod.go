package nodeauth

import (
	corev1 "k8s.io/api/core/v1"
)

// Pod is what the authorizer must know of a pod: a few names, so that those of all pods can be kept.
type Pod struct {
	Namespace, Name string
	account         string
	needs           references
	generation      int64
	claimed         bool // claims were made for it, which its status names
}

// NewPod takes down what a pod needs. known is what is known of an earlier version of it, or nil: what a pod needs stays as it is until its
// generation changes.
func NewPod(pod *corev1.Pod, known *Pod) *Pod {
	claimed := len(pod.Status.ResourceClaimStatuses) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
	if known != nil && known.generation == pod.Generation && pod.Generation != 0 && known.claimed == claimed && !claimed {
		return known
	}
	p := &Pod{Namespace: pod.Namespace, Name: pod.Name, generation: pod.Generation, claimed: claimed}
	// Nodes write mirror pods themselves. They get nothing by them, or a node could give itself whatever it names in one; NodeRestriction
	// refuses such pods, so this is the second lock.
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		p.account, p.needs = pod.Spec.ServiceAccountName, referencesOf(pod)
	}
	return p
}
