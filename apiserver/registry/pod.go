package registry

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// pods. What admission plugins of Kubernetes do to a new pod (ServiceAccount, Priority,
// DefaultTolerationSeconds) is in pod_prepare.go, subresources are in pod_subresources.go.
func pods() *Resource {
	r := newRow[corev1.Pod, corev1.PodList](corev1.SchemeGroupVersion, "pods", "Pod")
	r.ShortNames = []string{"po"}
	r.Categories = []string{"all"}
	r.Strategy = Strategy{
		Default:          defaulter(defaultPod),
		PrepareForCreate: preparer(preparePod),
		PrepareForUpdate: updatePreparer(preparePodUpdate),
		Validate:         validator(validatePod),
		ValidateUpdate:   updateValidator(validatePodUpdate),
		Warnings:         warningsOfNewPod,
		GracePeriod:      podGracePeriod,
		ReturnDeleted:    true,
	}
	r.Subresources = podSubresources(r)
	r.Fields = fieldSet(podFields)
	r.Columns, r.Row = podColumns, cells(podRow)
	return r
}

// warningsOfNewPod: on an update there is hardly anything left to warn of, and those who update pods are programs.
func warningsOfNewPod(_ context.Context, obj, old runtime.Object) []string {
	if old != nil {
		return nil
	}
	p := obj.(*corev1.Pod)
	return append(nameWarnings(p, "the Pod's hostname"), podWarnings(nil, &p.ObjectMeta, &p.Spec)...)
}

func podFields(p *corev1.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName":            p.Spec.NodeName,
		"spec.restartPolicy":       string(p.Spec.RestartPolicy),
		"spec.schedulerName":       p.Spec.SchedulerName,
		"spec.serviceAccountName":  p.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(p.Spec.HostNetwork),
		"status.phase":             string(p.Status.Phase),
		"status.podIP":             podIP(p),
		"status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}

func podIP(p *corev1.Pod) string {
	if len(p.Status.PodIPs) > 0 {
		return p.Status.PodIPs[0].IP
	}
	return p.Status.PodIP
}

// podGracePeriod: a pod that no node runs, or that has ended, is deleted at once. For the rest, the
// wish of the client stands, then that of the pod; a negative one means one second (kubectl --now).
func podGracePeriod(obj runtime.Object, asked *int64) int64 {
	p := obj.(*corev1.Pod)
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	period := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if own := p.Spec.TerminationGracePeriodSeconds; own != nil {
		period = *own
	}
	if asked != nil {
		period = *asked
	}
	if period < 0 {
		period = 1
	}
	return period
}
