package apiclient

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// LastKnown is the object that an informer says was deleted. After a relist the informer knows only that it is gone, and
// hands over a tombstone with the last version it had seen. It is false for anything but a T.
func LastKnown[T any](obj any) (T, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	typed, ok := obj.(T)
	return typed, ok
}

// DropManagedFields is an informer's transform that keeps caches small: none of our clients reads managedFields, and they
// are often half of an object.
func DropManagedFields(obj any) (any, error) {
	if accessor, ok := obj.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
