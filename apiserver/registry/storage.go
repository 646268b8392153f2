package registry

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// storageRows are what the scheduler and volume drivers watch. Not yet: validation beyond required
// and immutable fields, volumeattributesclasses, and anything that acts on them.
func storageRows() []*Resource {
	rows := []*Resource{csiDrivers(), csiNodes(), csiStorageCapacities(), storageClasses(), volumeAttachments(), volumeAttributesClasses()}
	for _, r := range rows {
		r.Strategy.NoGeneration = true
		r.Namespaced = r.Kind == "CSIStorageCapacity"
		r.Strategy.ReturnDeleted = !r.Namespaced
		r.Strategy.NeedsResourceVersion = r.Kind == "CSIDriver" || r.Kind == "CSIStorageCapacity"
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
		Validate: validator(func(c *storagev1.StorageClass) field.ErrorList {
			faults := driverName(field.NewPath("provisioner"), c.Provisioner)
			faults = append(faults, classParameters(field.NewPath("parameters"), c.Parameters, true)...)
			faults = append(faults, oneOf(field.NewPath("reclaimPolicy"), *c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
			return append(faults, oneOf(field.NewPath("volumeBindingMode"), *c.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
		}),
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
			if len(d.Spec.VolumeLifecycleModes) == 0 {
				d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
			}
		}),
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
	r.Strategy = Strategy{Validate: validator(func(n *storagev1.CSINode) field.ErrorList {
		var faults field.ErrorList
		seen := names{}
		for i, d := range n.Spec.Drivers {
			at := specPath.Child("drivers").Index(i)
			faults = append(faults, required(at.Child("name"), d.Name)...)
			faults = append(faults, required(at.Child("nodeID"), d.NodeID)...)
			faults = append(faults, seen.add(at.Child("name"), d.Name)...)
		}
		return faults
	})}
	r.Subresources = []Subresource{unjudged(statusOf(r, func(n, old *storagev1.CSINode) { n.Spec = old.Spec }))}
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
			return required(field.NewPath("storageClassName"), c.StorageClassName)
		}),
		ValidateUpdate: updateValidator(func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			faults := immutable(field.NewPath("nodeTopology"), c.NodeTopology, old.NodeTopology)
			return append(faults, immutable(field.NewPath("storageClassName"), c.StorageClassName, old.StorageClassName)...)
		}),
	}
	r.Columns = columns([]string{"Name", "StorageClassName", "Capacity"})
	r.Row = cells(func(c *storagev1.CSIStorageCapacity, _ time.Time) []any {
		capacity := unset
		if c.Capacity != nil {
			capacity = quantityText(*c.Capacity)
		}
		return []any{c.Name, c.StorageClassName, capacity}
	})
	return r
}

func volumeAttachments() *Resource {
	r := newRow[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](storagev1.SchemeGroupVersion, "volumeattachments", "VolumeAttachment")
	r.Strategy = Strategy{
		Validate: validator(func(a *storagev1.VolumeAttachment) field.ErrorList {
			faults := required(specPath.Child("attacher"), a.Spec.Attacher)
			faults = append(faults, required(specPath.Child("nodeName"), a.Spec.NodeName)...)
			if (a.Spec.Source.PersistentVolumeName == nil) == (a.Spec.Source.InlineVolumeSpec == nil) {
				faults = append(faults, field.Required(specPath.Child("source"), "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
			}
			return faults
		}),
		ValidateUpdate: updateValidator(func(a, old *storagev1.VolumeAttachment) field.ErrorList {
			return immutable(specPath, a.Spec, old.Spec)
		}),
	}
	r.Subresources = []Subresource{unjudged(statusOf(r, func(a, old *storagev1.VolumeAttachment) { a.Spec = old.Spec }))}
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
		Validate: validator(func(c *storagev1.VolumeAttributesClass) field.ErrorList {
			faults := driverName(field.NewPath("driverName"), c.DriverName)
			return append(faults, classParameters(field.NewPath("parameters"), c.Parameters, false)...)
		}),
		ValidateUpdate: updateValidator(func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			var faults field.ErrorList
			if c.DriverName != old.DriverName {
				faults = append(faults, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
			}
			if !maps.Equal(c.Parameters, old.Parameters) {
				faults = append(faults, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
			}
			return faults
		}),
	}
	r.Columns = columns([]string{"Name", "DriverName", "Age"})
	r.Row = cells(func(c *storagev1.VolumeAttributesClass, now time.Time) []any {
		return []any{c.Name, c.DriverName, age(&c.ObjectMeta, now)}
	})
	return r
}

// driverName of a provisioner is a qualified name in any case.
func driverName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return required(path, name)
	}
	return qualifiedName(path, strings.ToLower(name))
}

// classParameters go to a driver as they are: at most 512 of them, 256 KiB in all.
func classParameters(path *field.Path, parameters map[string]string, mayBeEmpty bool) field.ErrorList {
	if len(parameters) > 512 {
		return field.ErrorList{field.TooLong(path, "Provisioner Parameters", 512)}
	}
	var faults field.ErrorList
	size := 0
	for key, value := range inOrder(parameters) {
		if key == "" {
			faults = append(faults, field.Invalid(path, key, "field can not be empty."))
		}
		size += len(key) + len(value)
	}
	if size > 256<<10 {
		faults = append(faults, field.TooLong(path, "", 256<<10))
	}
	if len(parameters) == 0 && !mayBeEmpty {
		faults = append(faults, field.Required(path, "must contain at least one key/value pair"))
	}
	return faults
}
