package registry

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// storageRows are what the scheduler and volume drivers watch; what is refused is in storage_validation.go. Not yet:
// anything that acts on them.
func storageRows() []*Resource {
	rows := []*Resource{csiDrivers(), csiNodes(), csiStorageCapacities(), storageClasses(), volumeAttachments(), volumeAttributesClasses()}
	for _, r := range rows {
		r.Strategy.NoGeneration = true
		r.Namespaced = r.Kind == "CSIStorageCapacity"
		r.Strategy.ReturnDeleted = !r.Namespaced
		r.Strategy.NeedsResourceVersion = slices.Contains([]string{"CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment"}, r.Kind)
	}
	return rows
}

func storageClasses() *Resource {
	r := newRow[storagev1.StorageClass, storagev1.StorageClassList](storagev1.SchemeGroupVersion, "storageclasses", "StorageClass")
	r.ShortNames = []string{"sc"}
	r.Strategy = Strategy{
		Default: defaulter(func(c *storagev1.StorageClass) {
			setPointer(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
			setPointer(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
		}),
		Validate: validator(validateStorageClass),
		Warnings: warnings(storageClassWarnings),
		ValidateUpdate: updateValidator(func(c, old *storagev1.StorageClass) field.ErrorList {
			faults := immutable(field.NewPath("parameters"), c.Parameters, old.Parameters)
			faults = append(faults, immutable(field.NewPath("provisioner"), c.Provisioner, old.Provisioner)...)
			faults = append(faults, immutable(field.NewPath("reclaimPolicy"), c.ReclaimPolicy, old.ReclaimPolicy)...)
			return append(faults, immutable(field.NewPath("volumeBindingMode"), c.VolumeBindingMode, old.VolumeBindingMode)...)
		}),
	}
	r.Columns = columns([]string{"Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"})
	r.Row = cells(func(c *storagev1.StorageClass, now time.Time) []any {
		name, reclaim, binding := c.Name, corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			name += " (default)"
		}
		if c.ReclaimPolicy != nil {
			reclaim = *c.ReclaimPolicy
		}
		if c.VolumeBindingMode != nil {
			binding = *c.VolumeBindingMode
		}
		return []any{name, c.Provisioner, string(reclaim), string(binding), isTrue(c.AllowVolumeExpansion), age(&c.ObjectMeta, now)}
	})
	return r
}

func isTrue(b *bool) bool { return b != nil && *b }

func csiDrivers() *Resource {
	r := newRow[storagev1.CSIDriver, storagev1.CSIDriverList](storagev1.SchemeGroupVersion, "csidrivers", "CSIDriver")
	r.Strategy = Strategy{
		Default: defaulter(func(d *storagev1.CSIDriver) {
			setPointer(&d.Spec.AttachRequired, true)
			setPointer(&d.Spec.PodInfoOnMount, false)
			setPointer(&d.Spec.StorageCapacity, false)
			setPointer(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
			setPointer(&d.Spec.RequiresRepublish, false)
			setPointer(&d.Spec.SELinuxMount, false)
			setPointer(&d.Spec.PreventPodSchedulingIfMissing, false)
			if len(d.Spec.VolumeLifecycleModes) == 0 {
				d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
			}
		}),
		PrepareForUpdate: updatePreparer(func(d, old *storagev1.CSIDriver) {
			if !apiequality.Semantic.DeepEqual(d.Spec, old.Spec) { // a new driver has none
				d.Generation = old.Generation + 1
			}
		}),
		Validate: validator(validateCSIDriver),
		ValidateUpdate: updateValidator(func(d, old *storagev1.CSIDriver) field.ErrorList {
			faults := immutable(specPath.Child("attachedRequired"), d.Spec.AttachRequired, old.Spec.AttachRequired)
			return append(faults, immutable(specPath.Child("volumeLifecycleModes"), d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)...)
		}),
	}
	r.Columns = columns([]string{"Name", "AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests", "RequiresRepublish:boolean", "Modes", "Age"})
	r.Row = cells(func(d *storagev1.CSIDriver, now time.Time) []any {
		tokens, modes := unset, []string(nil)
		if d.Spec.TokenRequests != nil {
			var audiences []string
			for _, t := range d.Spec.TokenRequests {
				audiences = append(audiences, t.Audience)
			}
			tokens = strings.Join(audiences, ",")
		}
		for _, m := range d.Spec.VolumeLifecycleModes {
			modes = append(modes, string(m))
		}
		attach := d.Spec.AttachRequired == nil || *d.Spec.AttachRequired
		return []any{d.Name, attach, isTrue(d.Spec.PodInfoOnMount), isTrue(d.Spec.StorageCapacity), tokens, isTrue(d.Spec.RequiresRepublish),
			orElse(strings.Join(modes, ","), none), age(&d.ObjectMeta, now)}
	})
	return r
}

func csiNodes() *Resource {
	r := newRow[storagev1.CSINode, storagev1.CSINodeList](storagev1.SchemeGroupVersion, "csinodes", "CSINode")
	r.Strategy = Strategy{Validate: validator(validateCSINode), ValidateUpdate: updateValidator(validateCSINodeUpdate)}
	r.Subresources = []Subresource{judged(sealed(statusOf(r, func(n, old *storagev1.CSINode) { n.Spec = old.Spec })), validateCSINodeStatus)}
	r.Columns = columns([]string{"Name", "Drivers:integer", "Age"})
	r.Row = cells(func(n *storagev1.CSINode, now time.Time) []any {
		return []any{n.Name, int64(len(n.Spec.Drivers)), age(&n.ObjectMeta, now)}
	})
	return r
}

func csiStorageCapacities() *Resource {
	r := newRow[storagev1.CSIStorageCapacity, storagev1.CSIStorageCapacityList](storagev1.SchemeGroupVersion, "csistoragecapacities", "CSIStorageCapacity")
	r.Strategy = Strategy{
		Validate: validator(func(c *storagev1.CSIStorageCapacity) field.ErrorList {
			faults := metavalidation.ValidateLabelSelector(c.NodeTopology, metavalidation.LabelSelectorValidationOptions{}, field.NewPath("nodeTopology"))
			faults = append(faults, dnsSubdomain(field.NewPath("storageClassName"), c.StorageClassName)...)
			if c.Capacity != nil && c.Capacity.Sign() < 0 {
				faults = append(faults, field.Invalid(field.NewPath("capacity"), c.Capacity.String(), "must be greater than or equal to 0"))
			}
			return faults
		}),
		ValidateUpdate: updateValidator(func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			faults := immutable(field.NewPath("nodeTopology"), c.NodeTopology, old.NodeTopology)
			return append(faults, immutable(field.NewPath("storageClassName"), c.StorageClassName, old.StorageClassName)...)
		}),
	}
	r.Columns = columns([]string{"Name", "Created At:date"})
	r.Row = cells(func(c *storagev1.CSIStorageCapacity, _ time.Time) []any { return createdAt(&c.ObjectMeta) })
	return r
}

func volumeAttachments() *Resource {
	r := newRow[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](storagev1.SchemeGroupVersion, "volumeattachments", "VolumeAttachment")
	r.Strategy = Strategy{
		Validate: validator(validateAttachment),
		ValidateUpdate: updateValidator(func(a, old *storagev1.VolumeAttachment) field.ErrorList {
			return immutable(specPath, a.Spec, old.Spec)
		}),
	}
	r.Subresources = []Subresource{judged(sealed(statusOf(r, func(a, old *storagev1.VolumeAttachment) { a.Spec = old.Spec })), validateAttachment)}
	r.Columns = columns([]string{"Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"})
	r.Row = cells(func(a *storagev1.VolumeAttachment, now time.Time) []any {
		volume := ""
		if a.Spec.Source.PersistentVolumeName != nil {
			volume = *a.Spec.Source.PersistentVolumeName
		}
		return []any{a.Name, a.Spec.Attacher, volume, a.Spec.NodeName, a.Status.Attached, age(&a.ObjectMeta, now)}
	})
	return r
}

// volumeAttributesClasses are what a claim may be changed to while it is in use (throughput, say).
func volumeAttributesClasses() *Resource {
	r := newRow[storagev1.VolumeAttributesClass, storagev1.VolumeAttributesClassList](storagev1.SchemeGroupVersion, "volumeattributesclasses", "VolumeAttributesClass")
	r.ShortNames = []string{"vac"}
	r.Strategy = Strategy{
		Validate:        validator(validateAttributesClass),
		UpdateRulesOnly: true, // which has all of them, in Kubernetes' order
		ValidateUpdate: updateValidator(func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			var faults field.ErrorList
			if c.DriverName != old.DriverName {
				faults = append(faults, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
			}
			if !maps.Equal(c.Parameters, old.Parameters) {
				faults = append(faults, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
			}
			return append(faults, validateAttributesClass(c)...)
		}),
	}
	r.Columns = columns([]string{"Name", "DriverName", "Age"})
	r.Row = cells(func(c *storagev1.VolumeAttributesClass, now time.Time) []any {
		return []any{c.Name, c.DriverName, age(&c.ObjectMeta, now)}
	})
	return r
}
