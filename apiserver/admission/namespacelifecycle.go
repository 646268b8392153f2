package admission

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namespaceLifecycle refuses to create in a namespace that does not exist or is going away, and to delete those that a
// cluster cannot do without.
type namespaceLifecycle struct{ objects Objects }

var (
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
	immortal   = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
)

// Mutate implements Mutator, although it changes nothing: this is to be said before anything else.
func (n namespaceLifecycle) Mutate(ctx context.Context, r *Request) error {
	if r.Resource.GroupResource() == namespaces.GroupResource() {
		if r.Operation == Delete && slices.Contains(immortal, r.Name) {
			return refused(r, "this namespace may not be deleted")
		}
		return nil
	}
	// What one may do in a namespace is answered for one that does not exist too: who may not see it learns nothing.
	review := r.Resource.Group == "authorization.k8s.io"
	if r.Operation != Create || r.Subresource != "" || r.Namespace == "" || review {
		return nil
	}
	found, err := n.objects.Get(ctx, namespaces, "", r.Namespace)
	if err != nil {
		return err
	}
	if found.(*corev1.Namespace).DeletionTimestamp == nil {
		return nil
	}
	err = refused(r, "unable to create new content in namespace %s because it is being terminated", r.Namespace)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: "namespace " + r.Namespace + " is being terminated", Field: "metadata.namespace",
		})
	}
	return err
}
