package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// storageProtection puts a finalizer on volumes, claims and attributes classes, which the protection controllers
// (controllers/protection.go) take off when nobody uses them any more: what a running pod has mounted is not deleted under it.
type storageProtection struct{}

// The finalizers, by resource.
const (
	claimProtection      = "kubernetes.io/pvc-protection"
	volumeProtection     = "kubernetes.io/pv-protection"
	attributesProtection = "kubernetes.io/vac-protection"
)

// Mutate implements Mutator.
func (storageProtection) Mutate(_ context.Context, r *Request) error {
	if r.Operation != Create || r.Subresource != "" {
		return nil
	}
	switch o := r.Object.(type) {
	case *corev1.PersistentVolume:
		protect(o, volumeProtection)
	case *corev1.PersistentVolumeClaim:
		protect(o, claimProtection)
	case *storagev1.VolumeAttributesClass:
		protect(o, attributesProtection)
	}
	return nil
}

func protect(o metav1.Object, finalizer string) {
	if !slices.Contains(o.GetFinalizers(), finalizer) {
		o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	}
}
