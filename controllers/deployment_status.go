package controllers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the conditions, as clients (kubectl rollout status) know them.
const (
	reasonAvailable    = "MinimumReplicasAvailable"
	reasonUnavailable  = "MinimumReplicasUnavailable"
	reasonNewSet       = "NewReplicaSetCreated"
	reasonFoundSet     = "FoundNewReplicaSet"
	reasonUpdated      = "ReplicaSetUpdated"
	reasonComplete     = "NewReplicaSetAvailable"
	reasonTimedOut     = "ProgressDeadlineExceeded"
	reasonPaused       = "DeploymentPaused"
	reasonResumed      = "DeploymentResumed"
	reasonCreateFailed = "ReplicaSetCreateError"
)

// updateStatus writes counts and conditions if they changed. It returns after how long the progress deadline should be
// checked, zero for never.
func (d *deployment) updateStatus(ctx context.Context, r *rollout) (time.Duration, error) {
	now := d.now()
	status := r.status(now)
	r.progress(&status, now)
	wait := r.deadlineIn(&status, now)
	if equality.Semantic.DeepEqual(r.Status, status) {
		return wait, nil
	}
	update := r.Deployment.DeepCopy()
	update.Status = status
	_, err := d.client.AppsV1().Deployments(r.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	return wait, err
}

// status counts over all ReplicaSets and judges availability; the Progressing condition is carried over.
func (r *rollout) status(now time.Time) appsv1.DeploymentStatus {
	status := appsv1.DeploymentStatus{
		ObservedGeneration: r.Generation, CollisionCount: r.Status.CollisionCount,
		Conditions: slices.Clone(r.Status.Conditions), TerminatingReplicas: new(int32),
	}
	for _, rs := range r.all() {
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
		if rs.Status.TerminatingReplicas != nil {
			*status.TerminatingReplicas += *rs.Status.TerminatingReplicas
		}
	}
	if r.current != nil {
		status.UpdatedReplicas = r.current.Status.Replicas
	}
	status.UnavailableReplicas = max(0, specReplicas(r.all())-status.AvailableReplicas)
	_, unavailable := r.limits()
	if status.AvailableReplicas >= *r.Spec.Replicas-unavailable {
		setCondition(&status, available(corev1.ConditionTrue, reasonAvailable, "Deployment has minimum availability.", now))
	} else {
		setCondition(&status, available(corev1.ConditionFalse, reasonUnavailable, "Deployment does not have minimum availability.", now))
	}
	return status
}

// complete: all replicas are of the current template, exist, and are available, and no others are left.
func (r *rollout) complete(status appsv1.DeploymentStatus) bool {
	want := *r.Spec.Replicas
	return status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
}

// progress sets the Progressing condition: true while the rollout moves and when it is done, false when nothing has moved
// for spec.progressDeadlineSeconds. Its lastUpdateTime is when something last moved. A finished rollout stays finished even
// if pods fail later; only a new template starts another.
func (r *rollout) progress(status *appsv1.DeploymentStatus, now time.Time) {
	r.copyFailure(status)
	current := condition(&r.Status, appsv1.DeploymentProgressing)
	say := func(is corev1.ConditionStatus, reason, format string) {
		setCondition(status, progressing(is, reason, fmt.Sprintf(format, r.current.Name), now))
	}
	switch {
	case !hasDeadline(r.Deployment):
		removeCondition(status, appsv1.DeploymentProgressing)
	case r.Spec.Paused:
		if current == nil || current.Reason != reasonTimedOut {
			setCondition(status, progressing(corev1.ConditionUnknown, reasonPaused, "Deployment is paused", now))
		}
	case current != nil && current.Reason == reasonPaused:
		setCondition(status, progressing(corev1.ConditionUnknown, reasonResumed, "Deployment is resumed", now))
	case r.current == nil || r.finished() && status.UpdatedReplicas == status.Replicas:
	case r.complete(*status):
		say(corev1.ConditionTrue, reasonComplete, "ReplicaSet %q has successfully progressed.")
	case r.created:
		say(corev1.ConditionTrue, reasonNewSet, "Created new replica set %q")
	case current == nil || r.finished():
		say(corev1.ConditionTrue, reasonFoundSet, "Found new replica set %q")
	case moved(&r.Status, status):
		r.touchProgress(status, current, now)
	case r.timedOut(current, now):
		say(corev1.ConditionFalse, reasonTimedOut, "ReplicaSet %q has timed out progressing.")
	}
}

// finished: the last thing said was that a rollout succeeded.
func (r *rollout) finished() bool {
	current := condition(&r.Status, appsv1.DeploymentProgressing)
	return current != nil && current.Reason == reasonComplete
}

// touchProgress renews lastUpdateTime, which setCondition would leave alone, and keeps lastTransitionTime if it was true.
func (r *rollout) touchProgress(status *appsv1.DeploymentStatus, current *appsv1.DeploymentCondition, now time.Time) {
	renewed := progressing(corev1.ConditionTrue, reasonUpdated, fmt.Sprintf("ReplicaSet %q is progressing.", r.current.Name), now)
	if current.Status == corev1.ConditionTrue {
		renewed.LastTransitionTime = current.LastTransitionTime
	}
	removeCondition(status, appsv1.DeploymentProgressing)
	status.Conditions = append(status.Conditions, renewed)
}

// moved: more new pods, fewer old ones, or more that are ready or available.
func moved(before, after *appsv1.DeploymentStatus) bool {
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas || after.AvailableReplicas > before.AvailableReplicas
}

func (r *rollout) timedOut(current *appsv1.DeploymentCondition, now time.Time) bool {
	if current.Reason == reasonTimedOut {
		return true
	}
	return !now.Before(current.LastUpdateTime.Add(deadline(r.Deployment)))
}

// deadlineIn is the time until the deadline of an unfinished rollout. A second is added because condition times have no
// fractions.
func (r *rollout) deadlineIn(status *appsv1.DeploymentStatus, now time.Time) time.Duration {
	current := condition(status, appsv1.DeploymentProgressing)
	if current == nil || r.Spec.Paused || current.Reason == reasonComplete || current.Reason == reasonTimedOut {
		return 0
	}
	return max(time.Second, current.LastUpdateTime.Add(deadline(r.Deployment)).Sub(now)+time.Second)
}

func deadline(d *appsv1.Deployment) time.Duration {
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}

// hasDeadline: the largest number means none, as documented by the API.
func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

// copyFailure shows a ReplicaSet's ReplicaFailure on the Deployment, the current one's first.
func (r *rollout) copyFailure(status *appsv1.DeploymentStatus) {
	removeCondition(status, appsv1.DeploymentReplicaFailure)
	sets := r.all()
	slices.Reverse(sets)
	for _, rs := range sets {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				status.Conditions = append(status.Conditions, appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason, Message: c.Message,
					LastTransitionTime: c.LastTransitionTime, LastUpdateTime: c.LastTransitionTime,
				})
				return
			}
		}
	}
}

func available(status corev1.ConditionStatus, reason, message string, now time.Time) appsv1.DeploymentCondition {
	return newCondition(appsv1.DeploymentAvailable, status, reason, message, now)
}

func progressing(status corev1.ConditionStatus, reason, message string, now time.Time) appsv1.DeploymentCondition {
	return newCondition(appsv1.DeploymentProgressing, status, reason, message, now)
}

func newCondition(
	kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string, now time.Time,
) appsv1.DeploymentCondition {
	at := metav1.NewTime(now.Truncate(time.Second))
	return appsv1.DeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
}

func condition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

// setCondition replaces a condition only if it says something else than before, and keeps lastTransitionTime while the
// status stays the same.
func setCondition(status *appsv1.DeploymentStatus, next appsv1.DeploymentCondition) {
	if current := condition(status, next.Type); current != nil {
		if current.Status == next.Status && current.Reason == next.Reason {
			return
		}
		if current.Status == next.Status {
			next.LastTransitionTime = current.LastTransitionTime
		}
	}
	removeCondition(status, next.Type)
	status.Conditions = append(status.Conditions, next)
}

func removeCondition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}
