package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unschedulable counts why nodes were refused.
type unschedulable struct {
	nodes int
	count map[string]int
}

func (u *unschedulable) add(reasons []string) {
	for _, reason := range reasons {
		u.count[reason]++
	}
}

// String is Kubernetes' message: "0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu."
func (u *unschedulable) String() string {
	if u.nodes == 0 {
		return "no nodes available to schedule pods"
	}
	var parts []string
	for reason, n := range u.count {
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", u.nodes, strings.Join(parts, ", "))
}

// explain says why a pod waits, in an event and in its PodScheduled condition.
func (s *scheduler) explain(ctx context.Context, pod *corev1.Pod, why *unschedulable) {
	message := why.String()
	s.recorder.Event(pod, corev1.EventTypeWarning, "FailedScheduling", message)
	if err := s.setUnscheduled(ctx, pod, message); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		s.log.Warn("writing PodScheduled failed", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	}
}

// setUnscheduled patches the one condition, if it says something new. Conditions merge by type.
func (s *scheduler) setUnscheduled(ctx context.Context, pod *corev1.Pod, message string) error {
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)), ObservedGeneration: pod.Generation,
	}
	for _, current := range pod.Status.Conditions {
		if current.Type != condition.Type || current.Status != condition.Status {
			continue
		}
		if current.Reason == condition.Reason && current.Message == message {
			return nil
		}
		condition.LastTransitionTime = current.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
