package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestStorageProtection(t *testing.T) {
	for want, obj := range map[string]runtime.Object{
		"kubernetes.io/pvc-protection": &corev1.PersistentVolumeClaim{ObjectMeta: inNS("c")},
		"kubernetes.io/pv-protection":  &corev1.PersistentVolume{ObjectMeta: named("v")},
		"kubernetes.io/vac-protection": &storagev1.VolumeAttributesClass{ObjectMeta: named("a")},
	} {
		for range 2 { // once
			require.NoError(t, storageProtection{}.Mutate(t.Context(), write(obj, nil, "")))
			require.Equal(t, []string{want}, obj.(metav1.Object).GetFinalizers())
		}
	}
	update := &corev1.PersistentVolumeClaim{ObjectMeta: inNS("c")}
	require.NoError(t, storageProtection{}.Mutate(t.Context(), write(update, update, "")))
	require.Empty(t, update.Finalizers)
}
