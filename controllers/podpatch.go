package controllers

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// patchPodCondition sets one condition of a pod, and its phase unless that is empty. The uid in the patch makes it fail on
// another pod of the same name. A pod that is gone is no error.
func patchPodCondition(
	ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, condition corev1.PodCondition, phase corev1.PodPhase,
) error {
	condition.ObservedGeneration = pod.Generation
	status := map[string]any{"conditions": []corev1.PodCondition{condition}} // conditions merge by type
	if phase != "" {
		status["phase"] = phase
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreNotFound(err)
}

// deletePod deletes exactly this pod; graceSeconds nil means as its spec says. Gone is no error.
func deletePod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, graceSeconds *int64) error {
	options := exactly(pod)
	options.GracePeriodSeconds = graceSeconds
	return ignoreNotFound(client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options))
}
