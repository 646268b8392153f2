package quota

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/storage/volume"
)

// byClass is what comes between a storage class and what is limited of it:
// "gold.storageclass.storage.k8s.io/requests.storage".
const byClass = ".storageclass.storage.k8s.io/"

var claimNames = []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage}

// claimMeasure is that of PersistentVolumeClaims: their number and the storage they ask for, in all and by class.
func claimMeasure() *Measure {
	claims := corev1.Resource("persistentvolumeclaims")
	count := countName(claims)
	return &Measure{
		Resource: claims,
		tracks: func(name corev1.ResourceName) bool {
			_, what, ok := strings.Cut(string(name), byClass)
			return name == count || slices.Contains(claimNames, name) || ok && slices.Contains(claimNames, corev1.ResourceName(what))
		},
		usage: func(obj runtime.Object, _ time.Time) corev1.ResourceList {
			out := corev1.ResourceList{count: one(), corev1.ResourcePersistentVolumeClaims: one()}
			claim, ok := obj.(*corev1.PersistentVolumeClaim)
			if !ok {
				return out
			}
			if storage, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
				// What a failed expansion has been given already stays taken.
				if given, ok := claim.Status.AllocatedResources[corev1.ResourceStorage]; ok && given.Cmp(storage) > 0 {
					storage = given
				}
				storage = storage.DeepCopy()
				storage.RoundUp(0) // to whole bytes, which a quota's status wants
				out[corev1.ResourceRequestsStorage] = storage
			}
			if class := volume.GetPersistentVolumeClaimClass(claim); class != "" {
				for _, name := range claimNames {
					if amount, ok := out[name]; ok {
						out[corev1.ResourceName(class+byClass+string(name))] = amount
					}
				}
			}
			return out
		},
		inScope: func(scope corev1.ScopedResourceSelectorRequirement, obj runtime.Object) bool {
			claim, ok := obj.(*corev1.PersistentVolumeClaim)
			return ok && scope.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass && named(scope, attributesClasses(claim))
		},
		grows: func(subresource string, obj, old runtime.Object) bool {
			return subresource == "" || subresource == "status" && claimStatusCounts(obj, old)
		},
	}
}

// attributesClasses are those that a claim has, wants, or is on its way to.
func attributesClasses(c *corev1.PersistentVolumeClaim) []string {
	var out []string
	for _, name := range []*string{c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName} {
		if name != nil && *name != "" && !slices.Contains(out, *name) {
			out = append(out, *name)
		}
	}
	if m := c.Status.ModifyVolumeStatus; m != nil && m.TargetVolumeAttributesClassName != "" && !slices.Contains(out, m.TargetVolumeAttributesClassName) {
		out = append(out, m.TargetVolumeAttributesClassName)
	}
	return out
}

// claimStatusCounts says whether two statuses of a claim differ in what counts.
func claimStatusCounts(obj, old runtime.Object) bool {
	now, ok := obj.(*corev1.PersistentVolumeClaim)
	before, too := old.(*corev1.PersistentVolumeClaim)
	return ok && too && (!Equal(now.Status.AllocatedResources, before.Status.AllocatedResources) ||
		!slices.Equal(attributesClasses(now), attributesClasses(before)))
}
