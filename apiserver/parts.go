package apiserver

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Every API object is metadata, a status perhaps, and the rest, which is what its users wish for
// (API conventions, "Spec and Status"). The generic path has to tell these parts apart without
// knowing the kind.

// copyStatus sets obj's status to that of from; a nil from empties it.
func copyStatus(obj, from runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		delete(u.Object, "status")
		if from == nil {
			return
		}
		if status, ok := from.(*unstructured.Unstructured).Object["status"]; ok {
			u.Object["status"] = runtime.DeepCopyJSONValue(status)
		}
		return
	}
	status := structOf(obj).FieldByName("Status")
	if !status.IsValid() {
		return
	}
	if from == nil {
		status.SetZero()
		return
	}
	status.Set(structOf(from.DeepCopyObject()).FieldByName("Status"))
}

// sameWish says whether two objects of one kind are equal outside metadata and status.
func sameWish(a, b runtime.Object) bool {
	if u, ok := a.(*unstructured.Unstructured); ok {
		return sameWishUnstructured(u.Object, b.(*unstructured.Unstructured).Object)
	}
	left, right := structOf(a), structOf(b)
	for i := range left.NumField() {
		switch left.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
			continue
		}
		if !equality.Semantic.DeepEqual(left.Field(i).Interface(), right.Field(i).Interface()) {
			return false
		}
	}
	return true
}

func sameWishUnstructured(a, b map[string]any) bool {
	within := func(a, b map[string]any) bool {
		for key, value := range a {
			if key != "metadata" && key != "status" && !reflect.DeepEqual(value, b[key]) {
				return false
			}
		}
		return true
	}
	return within(a, b) && within(b, a)
}

func structOf(obj runtime.Object) reflect.Value { return reflect.ValueOf(obj).Elem() }
