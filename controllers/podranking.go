package controllers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// deletionOrder sorts pods so that those to delete first come first, as Kubernetes ranks them (the ReplicaSet's
// documentation, "Pod deletion cost" and "Scaling down"): what serves least goes first, and among equals what has been up
// shortest. neighbours counts, per node, the pods of the same application; a crowded node gives first.
func deletionOrder(pods []*corev1.Pod, neighbours map[string]int, now time.Time) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(boolRank(a.Spec.NodeName != ""), boolRank(b.Spec.NodeName != "")), // not assigned
			cmp.Compare(phaseRank(a), phaseRank(b)),                                       // Pending, then Unknown, then Running
			cmp.Compare(boolRank(podReady(a)), boolRank(podReady(b))),                     // not ready
			cmp.Compare(deletionCost(a), deletionCost(b)),                                 // cheaper
			cmp.Compare(neighbours[b.Spec.NodeName], neighbours[a.Spec.NodeName]),         // more neighbours
			youngerFirst(podReadySince(a), podReadySince(b), now),
			cmp.Compare(podRestarts(b), podRestarts(a)), // more restarts
			youngerFirst(a.CreationTimestamp.Time, b.CreationTimestamp.Time, now),
			cmp.Compare(a.UID, b.UID), // a fixed order, so that every reconcile picks the same pods
		)
	})
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func phaseRank(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

func deletionCost(pod *corev1.Pod) int32 {
	cost, err := strconv.ParseInt(pod.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0 // absent or malformed: documented as 0
	}
	return int32(cost)
}

// youngerFirst compares ages by order of magnitude (powers of two of seconds): among pods of about the same age the choice
// should not always hit those of the latest rollout. The zero time (never ready) comes first.
func youngerFirst(a, b, now time.Time) int {
	if a.IsZero() || b.IsZero() {
		return cmp.Compare(boolRank(!a.IsZero()), boolRank(!b.IsZero()))
	}
	return cmp.Compare(magnitude(now.Sub(a)), magnitude(now.Sub(b)))
}

func magnitude(age time.Duration) int {
	if age < time.Second {
		return 0
	}
	return 1 + int(math.Log2(age.Seconds()))
}
