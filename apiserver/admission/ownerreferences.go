package admission

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ownerReferences keeps people from having the garbage collector do what they may not: to change an object's owners, which
// can be the end of it, takes the right to delete it, and to let it hold up its owner's deletion takes the right to set the
// owner's finalizers. Off unless it is enabled, as in kube-apiserver.
type ownerReferences struct{ cluster Cluster }

// Validate implements Validator.
func (o ownerReferences) Validate(ctx context.Context, r *Request) error {
	if r.Operation != Create && r.Operation != Update || r.Resource.Resource == "pods" && r.Subresource == "status" {
		return nil // whose strategy leaves owners alone
	}
	now, before := ownersOf(r.Object), ownersOf(r.Old)
	if equality.Semantic.DeepEqual(now, before) {
		return nil
	}
	if r.Operation == Update {
		ok, reason := o.cluster.Allowed(ctx, r.User, authorizationv1.ResourceAttributes{
			Verb: "delete", Group: r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource, Subresource: r.Subresource,
			Namespace: r.Namespace, Name: r.Name,
		})
		if !ok {
			return refused(r, "cannot set an ownerRef on a resource you can't delete: %s", reason)
		}
	}
	for _, ref := range newlyBlocking(now, before) {
		if err := o.mayBlock(ctx, r, ref); err != nil {
			return err
		}
	}
	return nil
}

// ownersOf are the owners of an object; none if there is no object.
func ownersOf(obj runtime.Object) []metav1.OwnerReference {
	m, err := meta.Accessor(obj)
	if obj == nil || err != nil {
		return nil
	}
	return m.GetOwnerReferences()
}

// newlyBlocking are the references that hold up an owner's deletion and did not do so before.
func newlyBlocking(now, before []metav1.OwnerReference) []metav1.OwnerReference {
	blocks := map[types.UID]bool{}
	for _, ref := range before {
		blocks[ref.UID] = ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
	}
	var out []metav1.OwnerReference
	for _, ref := range now {
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion && !blocks[ref.UID] {
			out = append(out, ref)
		}
	}
	return out
}

// mayBlock asks for the right to set the finalizers of an owner.
func (o ownerReferences) mayBlock(ctx context.Context, r *Request, ref metav1.OwnerReference) error {
	resource, namespaced, ok := o.cluster.ResourceOf(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !ok {
		return refused(r, "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s", ref.APIVersion, ref.Kind)
	}
	action := authorizationv1.ResourceAttributes{
		Verb: "update", Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Subresource: "finalizers", Name: ref.Name,
	}
	if namespaced {
		action.Namespace = r.Namespace // where the owner has to be
	}
	if ok, reason := o.cluster.Allowed(ctx, r.User, action); !ok {
		return refused(r, "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %s", reason)
	}
	return nil
}
