package registry

import (
	"math"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateStorageClass(c *storagev1.StorageClass) field.ErrorList {
	faults := driverName(field.NewPath("provisioner"), c.Provisioner)
	faults = append(faults, classParameters(field.NewPath("parameters"), c.Parameters, true)...)
	if p := *c.ReclaimPolicy; p != "" {
		faults = append(faults, supported(field.NewPath("reclaimPolicy"), p, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
	}
	faults = append(faults, supported(field.NewPath("volumeBindingMode"), *c.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	return append(faults, topologies(field.NewPath("allowedTopologies"), c.AllowedTopologies)...)
}

// topologies: a key stands once in a term, a term once in the list.
func topologies(path *field.Path, terms []corev1.TopologySelectorTerm) field.ErrorList {
	var faults field.ErrorList
	var seen []map[string]sets.Set[string]
	for i, term := range terms {
		at := path.Index(i).Child("matchLabelExpressions")
		values := map[string]sets.Set[string]{}
		for j, r := range term.MatchLabelExpressions {
			inner := at.Index(j)
			faults = append(faults, topologyValues(inner, r)...)
			if _, twice := values[r.Key]; twice {
				faults = append(faults, field.Duplicate(inner.Child("key"), r.Key))
			}
			values[r.Key] = sets.New(r.Values...)
		}
		for _, other := range seen {
			if reflect.DeepEqual(values, other) {
				faults = append(faults, field.Duplicate(at, ""))
			}
		}
		seen = append(seen, values)
	}
	return faults
}

func topologyValues(path *field.Path, r corev1.TopologySelectorLabelRequirement) field.ErrorList {
	var faults field.ErrorList
	if len(r.Values) == 0 {
		faults = append(faults, field.Required(path.Child("values"), ""))
	}
	seen := names{}
	for i, v := range r.Values {
		faults = append(faults, seen.add(path.Child("values").Index(i), v)...)
	}
	return append(faults, metavalidation.ValidateLabelName(r.Key, path.Child("key"))...)
}

func validateCSIDriver(d *storagev1.CSIDriver) field.ErrorList {
	s := &d.Spec
	var faults field.ErrorList
	if s.FSGroupPolicy != nil {
		faults = append(faults, supported(specPath.Child("fsGroupPolicy"), *s.FSGroupPolicy,
			storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)...)
	}
	faults = append(faults, tokenRequests(specPath.Child("tokenRequests"), s.TokenRequests)...)
	for _, mode := range s.VolumeLifecycleModes {
		faults = append(faults, supported(specPath.Child("volumeLifecycleModes"), mode, storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
	}
	if n := s.NodeAllocatableUpdatePeriodSeconds; n != nil && *n < 10 {
		faults = append(faults, field.Invalid(specPath.Child("nodeAllocatableUpdatePeriodSeconds"), *n, "must be greater than or equal to 10 seconds"))
	}
	if s.ServiceAccountTokenInSecrets != nil && len(s.TokenRequests) == 0 {
		faults = append(faults, field.Invalid(specPath.Child("serviceAccountTokenInSecrets"), s.ServiceAccountTokenInSecrets, "serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
	}
	return faults
}

// tokenRequests are for different audiences; the tokens are good for ten minutes at least.
func tokenRequests(path *field.Path, list []storagev1.TokenRequest) field.ErrorList {
	var faults field.ErrorList
	audiences := map[string]bool{}
	for i, r := range list {
		at := path.Index(i)
		if audiences[r.Audience] {
			faults = append(faults, field.Duplicate(at.Child("audience"), r.Audience))
			continue
		}
		audiences[r.Audience] = true
		switch seconds := r.ExpirationSeconds; {
		case seconds == nil:
		case *seconds < 600:
			faults = append(faults, field.Invalid(at.Child("expirationSeconds"), *seconds, "may not specify a duration less than 10 minutes"))
		case *seconds > 1<<32:
			faults = append(faults, field.Invalid(at.Child("expirationSeconds"), *seconds, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	return faults
}

func validateCSINode(n *storagev1.CSINode) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	for i, d := range n.Spec.Drivers {
		at := specPath.Child("drivers").Index(i)
		faults = append(faults, csiDriverName(at.Child("name"), d.Name)...)
		faults = append(faults, required(at.Child("nodeID"), d.NodeID)...)
		if len(d.NodeID) > 256 {
			faults = append(faults, field.Invalid(at.Child("nodeID"), d.NodeID, "must be 256 characters or less"))
		}
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			faults = append(faults, notNegative(at.Child("allocatable", "count"), *d.Allocatable.Count)...)
		}
		faults = append(faults, seen.add(at.Child("name"), d.Name)...)
		faults = append(faults, topologyKeys(at, d.TopologyKeys)...)
	}
	return faults
}

func topologyKeys(path *field.Path, keys []string) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	for _, key := range keys { // Kubernetes blames the driver
		faults = append(faults, required(path, key)...)
		faults = append(faults, seen.add(path, key)...)
		faults = append(faults, qualifiedName(path, key)...)
	}
	return faults
}

// validateCSINodeUpdate: of a driver that stays, only the number of volumes may change.
func validateCSINodeUpdate(n, old *storagev1.CSINode) field.ErrorList {
	var faults field.ErrorList
	for _, was := range old.Spec.Drivers {
		for _, now := range n.Spec.Drivers {
			if now.Name == was.Name {
				now, was := now.DeepCopy(), was.DeepCopy()
				now.Allocatable, was.Allocatable = nil, nil
				if !reflect.DeepEqual(now, was) {
					faults = append(faults, field.Invalid(specPath.Child("drivers"), shown(now), "field is immutable"))
				}
			}
		}
	}
	return faults
}

func validateCSINodeStatus(n *storagev1.CSINode) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	for i, h := range n.Status.StorageHealth {
		at := field.NewPath("status", "storageHealth").Index(i)
		faults = append(faults, seen.add(at, h.Name)...)
		faults = append(faults, csiDriverName(at.Child("name"), h.Name)...)
		if len(h.HealthConditions) > 16 {
			faults = append(faults, field.TooMany(at.Child("healthConditions"), len(h.HealthConditions), 16))
			continue
		}
		for j, c := range h.HealthConditions {
			faults = append(faults, storageHealth(at.Child("healthConditions").Index(j), c)...)
		}
	}
	return faults
}

func storageHealth(path *field.Path, c storagev1.StorageHealthCondition) field.ErrorList {
	faults := supported(path.Child("status"), c.Status, storagev1.StorageDegraded, storagev1.StorageUnreachable)
	faults = append(faults, required(path.Child("reason"), c.Reason)...)
	if c.Reason != "" {
		faults = append(faults, invalid(path.Child("reason"), c.Reason, metavalidation.IsValidConditionReason(c.Reason))...)
	}
	if len(c.Reason) > 256 {
		faults = append(faults, field.TooLong(path.Child("reason"), c.Reason, 256))
	}
	if len(c.Message) > 1024 {
		faults = append(faults, field.TooLong(path.Child("message"), c.Message, 1024))
	}
	if c.AccessMode != nil {
		faults = append(faults, accessModes(path.Child("accessMode"), []corev1.PersistentVolumeAccessMode{*c.AccessMode})...)
	}
	if c.VolumeMode != nil {
		faults = append(faults, supported(path.Child("volumeMode"), *c.VolumeMode, corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock)...)
	}
	return faults
}

// validateAttachment. An inline volume comes from a pod that names an old driver's volume, which a CSI driver attaches.
func validateAttachment(a *storagev1.VolumeAttachment) field.ErrorList {
	faults := csiDriverName(specPath.Child("attacher"), a.Spec.Attacher)
	source, at := &a.Spec.Source, specPath.Child("source")
	const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	switch name := source.PersistentVolumeName; {
	case name == nil && source.InlineVolumeSpec == nil:
		faults = append(faults, field.Required(at, one))
	case name != nil && source.InlineVolumeSpec != nil:
		faults = append(faults, field.Forbidden(at, one))
	case name == nil:
		faults = append(faults, inlineVolume(at.Child("inlineVolumeSpec"), source.InlineVolumeSpec)...)
	case *name == "":
		faults = append(faults, field.Required(at.Child("persistentVolumeName"), "must specify non empty persistentVolumeName"))
	}
	faults = append(faults, dnsSubdomain(specPath.Child("nodeName"), a.Spec.NodeName)...)
	faults = append(faults, attachmentStatus(field.NewPath("status"), &a.Status)...)
	if name := source.PersistentVolumeName; name != nil {
		faults = append(faults, dnsSubdomain(at.Child("persistentVolumeName"), *name)...)
	}
	return faults
}

// inlineVolume has what a driver needs and nothing of a volume that is an object.
func inlineVolume(path *field.Path, s *corev1.PersistentVolumeSpec) field.ErrorList {
	const inline = "may not be specified in the context of inline volumes"
	var faults field.ErrorList
	for _, part := range []struct {
		name string
		set  bool
	}{
		{"claimRef", s.ClaimRef != nil}, {"capacity", len(s.Capacity) > 0}, {"nodeAffinity", s.NodeAffinity != nil}, {"storageClassName", s.StorageClassName != ""},
	} {
		if part.set {
			faults = append(faults, field.Forbidden(path.Child(part.name), inline))
		}
	}
	if s.CSI == nil {
		faults = append(faults, field.Required(path.Child("csi"), "has to be specified in the context of inline volumes"))
	} else {
		faults = append(faults, persistentCSI(path.Child("csi"), s.CSI)...)
	}
	if len(s.AccessModes) == 0 {
		faults = append(faults, field.Required(path.Child("accessModes"), ""))
	}
	faults = append(faults, accessModes(path.Child("accessModes"), s.AccessModes)...)
	if p := s.PersistentVolumeReclaimPolicy; p != "" && p != corev1.PersistentVolumeReclaimRetain {
		faults = append(faults, field.Forbidden(path.Child("persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes"))
	}
	if m := s.VolumeMode; m != nil && *m != corev1.PersistentVolumeFilesystem {
		faults = append(faults, field.Forbidden(path.Child("volumeMode"), "may not specify volumeMode other than Filesystem in the context of inline volumes"))
	}
	return faults
}

func attachmentStatus(path *field.Path, s *storagev1.VolumeAttachmentStatus) field.ErrorList {
	var faults field.ErrorList
	size := 0
	for key, value := range s.AttachmentMetadata {
		size += len(key) + len(value)
	}
	if size > 256<<10 {
		faults = append(faults, field.TooLong(path.Child("attachmentMetadata"), "", 256<<10))
	}
	faults = append(faults, volumeError(path.Child("attachError"), s.AttachError)...)
	return append(faults, volumeError(path.Child("detachError"), s.DetachError)...)
}

func volumeError(path *field.Path, e *storagev1.VolumeError) field.ErrorList {
	if e == nil {
		return nil
	}
	var faults field.ErrorList
	if len(e.Message) > 1024 {
		faults = append(faults, field.TooLong(path.Child("message"), "", 1024))
	}
	if e.ErrorCode != nil && *e.ErrorCode < 0 {
		faults = append(faults, field.Invalid(path.Child("errorCode"), *e.ErrorCode, validation.InclusiveRangeError(0, math.MaxInt32)))
	}
	return faults
}

func validateAttributesClass(c *storagev1.VolumeAttributesClass) field.ErrorList {
	faults := driverName(field.NewPath("driverName"), c.DriverName)
	return append(faults, classParameters(field.NewPath("parameters"), c.Parameters, false)...)
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
