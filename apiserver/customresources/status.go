package customresources

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/registry"
)

// statusSubresource writes the status and nothing else, labels and annotations included.
func (s *served) statusSubresource(r *registry.Resource) registry.Subresource {
	return registry.Subresource{
		Name:     "status",
		Kind:     s.kind,
		New:      r.New,
		Verbs:    []string{"get", "patch", "update"},
		Update:   keepAllButStatus,
		Resets:   []string{"metadata", "spec"},
		Validate: s.validateStatus,
	}
}

func keepAllButStatus(_ context.Context, obj, old runtime.Object) {
	u := obj.(*unstructured.Unstructured)
	status, found := u.Object["status"]
	owners := u.GetManagedFields() // of what this write changes
	u.Object = old.(*unstructured.Unstructured).DeepCopy().Object
	u.SetManagedFields(owners)
	delete(u.Object, "status")
	if found {
		u.Object["status"] = status
	}
}

// countStatus is a Strategy's PrepareForUpdate: where the status is no subresource it is a part of what users wish for.
func (s *served) countStatus(_ context.Context, obj, old runtime.Object) {
	if s.hasStatus {
		return
	}
	u, before := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	if !equality.Semantic.DeepEqual(u.Object["status"], before.Object["status"]) {
		u.SetGeneration(before.GetGeneration() + 1)
	}
}
