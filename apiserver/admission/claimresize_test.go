package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestClaimResize(t *testing.T) {
	claim := func(size, class string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: inNS("c"), Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		c.Status.Phase = corev1.ClaimBound
		return c
	}
	p := claimResize{&cluster{objects: []runtime.Object{
		&storagev1.StorageClass{ObjectMeta: named("grows"), AllowVolumeExpansion: ptr.To(true)},
		&storagev1.StorageClass{ObjectMeta: named("fixed")},
	}}}
	require.NoError(t, p.Validate(t.Context(), write(claim("2Gi", "grows"), claim("1Gi", "grows"), "")))
	require.NoError(t, p.Validate(t.Context(), write(claim("1Gi", "fixed"), claim("1Gi", "fixed"), "")))
	for _, class := range []string{"fixed", "none", ""} {
		forbidden(t, p.Validate(t.Context(), write(claim("2Gi", class), claim("1Gi", class), "")),
			"only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	}
	pending := claim("1Gi", "grows")
	pending.Status.Phase = corev1.ClaimPending
	forbidden(t, p.Validate(t.Context(), write(claim("2Gi", "grows"), pending, "")), "Only bound persistent volume claims can be expanded")
}
