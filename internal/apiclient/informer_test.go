package apiclient

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestLastKnown(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for _, told := range []any{pod, cache.DeletedFinalStateUnknown{Key: "default/a", Obj: pod}} {
		found, ok := LastKnown[*corev1.Pod](told)
		require.True(t, ok)
		require.Same(t, pod, found)
	}
	_, ok := LastKnown[*corev1.Node](pod)
	require.False(t, ok)
}

func TestDropManagedFields(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	kept, err := DropManagedFields(pod)
	require.NoError(t, err)
	require.Same(t, pod, kept)
	require.Empty(t, pod.ManagedFields)

	tombstone := cache.DeletedFinalStateUnknown{Key: "default/a"}
	kept, err = DropManagedFields(tombstone)
	require.NoError(t, err)
	require.Equal(t, tombstone, kept)
}
