package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"
)

// claimResize lets a claim ask for more storage only if its class allows volumes to grow.
type claimResize struct{ objects Objects }

// Validate implements Validator.
func (c claimResize) Validate(ctx context.Context, r *Request) error {
	claim, ok := r.Object.(*corev1.PersistentVolumeClaim)
	old, too := r.Old.(*corev1.PersistentVolumeClaim)
	if !ok || !too || r.Subresource != "" {
		return nil
	}
	before := old.Spec.Resources.Requests[corev1.ResourceStorage]
	if now := claim.Spec.Resources.Requests[corev1.ResourceStorage]; now.Cmp(before) <= 0 {
		return nil
	}
	if old.Status.Phase != corev1.ClaimBound {
		return refused(r, "Only bound persistent volume claims can be expanded")
	}
	grows, err := c.mayGrow(ctx, volume.GetPersistentVolumeClaimClass(claim), volume.GetPersistentVolumeClaimClass(old))
	if err == nil && !grows {
		err = refused(r, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	}
	return err
}

func (c claimResize) mayGrow(ctx context.Context, class, before string) (bool, error) {
	if class == "" || class != before {
		return false, nil
	}
	found, err := c.objects.Get(ctx, storageClasses, "", class)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	allowed := found.(*storagev1.StorageClass).AllowVolumeExpansion
	return allowed != nil && *allowed, nil
}
