package admission

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// judgeSlice: the authorizer lets a node create slices without seeing them: those of the node's own devices alone. Whose a
// slice is does not change after that.
func judgeSlice(r *Request, node string) error {
	if r.Operation != Create {
		return nil
	}
	slice, ok := r.Object.(*resourcev1.ResourceSlice)
	if !ok || slice.Spec.NodeName == nil || *slice.Spec.NodeName != node {
		return refused(r, "node %q can only create ResourceSlice with the same NodeName as the requesting node", node)
	}
	return nil
}

// judgeCertificateRequest: a node asks for certificates of the pods on it, as the accounts that they have.
func (n nodeRestriction) judgeCertificateRequest(ctx context.Context, r *Request, node string) error {
	if r.Operation != Create {
		return nil
	}
	request, ok := r.Object.(*certificatesv1.PodCertificateRequest)
	if !ok || string(request.Spec.NodeName) != node {
		return refused(r, "node %q can only request certificates with spec.nodeName set to itself", node)
	}
	spec := &request.Spec
	found, err := n.objects.Get(ctx, pods, r.Namespace, spec.PodName)
	if apierrors.IsNotFound(err) {
		return refused(r, "pod %q does not exist", spec.PodName)
	}
	if err != nil {
		return err
	}
	pod := found.(*corev1.Pod)
	switch {
	case isMirror(pod):
		return refused(r, "pod %q is a mirror pod", pod.Name)
	case pod.UID != spec.PodUID:
		return refused(r, "pod %q has another uid", pod.Name)
	case pod.Spec.NodeName != node:
		return refused(r, "pod %q is not on node %q", pod.Name, node)
	case pod.Spec.ServiceAccountName != spec.ServiceAccountName:
		return refused(r, "pod %q does not run as service account %q", pod.Name, spec.ServiceAccountName)
	}
	return n.judgeAccountOf(ctx, r, spec)
}

// judgeAccountOf: it is the account of now, and not one of the same name.
func (n nodeRestriction) judgeAccountOf(ctx context.Context, r *Request, spec *certificatesv1.PodCertificateRequestSpec) error {
	found, err := n.objects.Get(ctx, serviceAccounts, r.Namespace, spec.ServiceAccountName)
	if apierrors.IsNotFound(err) {
		return refused(r, "service account %q does not exist", spec.ServiceAccountName)
	}
	if err != nil {
		return err
	}
	if found.(*corev1.ServiceAccount).UID != spec.ServiceAccountUID {
		return refused(r, "service account %q has another uid", spec.ServiceAccountName)
	}
	return nil
}
