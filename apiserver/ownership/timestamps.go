package ownership

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KeepTimestamps undoes a change that is nothing but newer times in managedFields, so that a write
// that changes nothing stays free (AP-12).
func KeepTimestamps(next, old runtime.Object) {
	nextMeta, err := meta.Accessor(next)
	if err != nil {
		return
	}
	oldMeta, err := meta.Accessor(old)
	if err != nil {
		return
	}
	was, is := oldMeta.GetManagedFields(), nextMeta.GetManagedFields()
	if len(was) != len(is) || len(is) == 0 {
		return
	}
	for i := range is {
		if !sameEntry(was[i], is[i]) {
			return
		}
	}
	nextMeta.SetManagedFields(was)
	if !equality.Semantic.DeepEqual(next, old) {
		nextMeta.SetManagedFields(is)
	}
}

func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	a.Time, b.Time = nil, nil
	return reflect.DeepEqual(a, b)
}
