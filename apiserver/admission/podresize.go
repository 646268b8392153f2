package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// podResize refuses to resize a pod to what its node could never give.
type podResize struct{ objects Objects }

// Validate implements Validator.
func (p podResize) Validate(ctx context.Context, r *Request) error {
	pod, ok := r.Object.(*corev1.Pod)
	old, too := r.Old.(*corev1.Pod)
	if !ok || !too || r.Subresource != "resize" || pod.Spec.NodeName == "" || pod.Generation == old.Generation {
		return nil
	}
	found, err := p.objects.Get(ctx, nodes, "", pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return refused(r, "node %q not found", pod.Spec.NodeName)
	}
	if err != nil {
		return err
	}
	node := found.(*corev1.Node)
	if system, ok := node.Labels[corev1.LabelOSStable]; ok && system != "linux" {
		return because("UnsupportedPlatform", refused(r, "pod resize is only supported on linux nodes, node %q is %q", node.Name, system))
	}
	if lacks := beyondNode(pod, node); lacks != "" {
		return because("NodeCapacity", refused(r, "node didn't have enough allocatable resources: %s", lacks))
	}
	return nil
}

// beyondNode tells what the pod asks for beyond all that its node has.
func beyondNode(pod *corev1.Pod, node *corev1.Node) string {
	asked := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	has := node.Status.Allocatable
	var out []string
	if asked.Cpu().Cmp(*has.Cpu()) > 0 {
		out = append(out, fmt.Sprintf("cpu, requested: %d, allocatable: %d", asked.Cpu().MilliValue(), has.Cpu().MilliValue()))
	}
	if asked.Memory().Cmp(*has.Memory()) > 0 {
		out = append(out, fmt.Sprintf("memory, requested: %d, allocatable: %d", asked.Memory().Value(), has.Memory().Value()))
	}
	return strings.Join(out, "; ")
}

// because adds a cause for programs to a refusal.
func because(cause metav1.CauseType, err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return err
}
