package controllers

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// updateStatus writes the counts if they changed, and says after how long a ready pod will become available.
func (r *replicaSet) updateStatus(
	ctx context.Context, rs *appsv1.ReplicaSet, active []*corev1.Pod, terminating int32, manageErr error,
) (time.Duration, error) {
	now := r.now()
	status, wait := replicaSetStatus(rs, active, terminating, manageErr, now)
	if !r.countsTerminating {
		status.TerminatingReplicas = nil
	}
	if equality.Semantic.DeepEqual(rs.Status, status) {
		return wait, nil
	}
	update := rs.DeepCopy()
	update.Status = status
	return wait, r.writeStatus(ctx, update)
}

// replicaSetStatus counts the active pods: those that carry all labels of the template (fullyLabeled), are ready, and have
// been so for minReadySeconds (available).
func replicaSetStatus(
	rs *appsv1.ReplicaSet, active []*corev1.Pod, terminating int32, manageErr error, now time.Time,
) (appsv1.ReplicaSetStatus, time.Duration) {
	status := appsv1.ReplicaSetStatus{
		Replicas: int32(len(active)), TerminatingReplicas: &terminating,
		ObservedGeneration: rs.Generation, Conditions: replicaFailure(rs, len(active), manageErr, now),
	}
	template := labels.Set(rs.Spec.Template.Labels).AsSelectorPreValidated()
	var nextAvailable time.Duration
	for _, pod := range active {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		wait, ready := podAvailableIn(pod, rs.Spec.MinReadySeconds, now)
		switch {
		case !ready:
		case wait <= 0:
			status.ReadyReplicas++
			status.AvailableReplicas++
		default:
			status.ReadyReplicas++
			if nextAvailable == 0 || wait < nextAvailable {
				nextAvailable = wait
			}
		}
	}
	return status, nextAvailable
}

// replicaFailure keeps, sets or removes the ReplicaFailure condition, which a Deployment copies into its own status.
func replicaFailure(rs *appsv1.ReplicaSet, active int, manageErr error, now time.Time) []appsv1.ReplicaSetCondition {
	var others []appsv1.ReplicaSetCondition
	var current *appsv1.ReplicaSetCondition
	for i, c := range rs.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure {
			current = &rs.Status.Conditions[i]
		} else {
			others = append(others, c)
		}
	}
	switch {
	case manageErr == nil:
		return others
	case current != nil:
		return append(others, *current)
	}
	reason := "FailedCreate"
	if active > int(*rs.Spec.Replicas) {
		reason = "FailedDelete"
	}
	return append(others, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason,
		Message: manageErr.Error(), LastTransitionTime: metav1.NewTime(now),
	})
}
