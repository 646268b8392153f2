package registry

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// persistentVolumes. Not yet: validation of sources and of a status, and the finalizer that protects
// a volume in use (it comes with the controller that takes it away again).
func persistentVolumes() *Resource {
	r := newRow[corev1.PersistentVolume, corev1.PersistentVolumeList](corev1.SchemeGroupVersion, "persistentvolumes", "PersistentVolume")
	r.ShortNames, r.Namespaced = []string{"pv"}, false
	r.Strategy = Strategy{
		NoGeneration:  true,
		ReturnDeleted: true,
		Default: defaulter(func(v *corev1.PersistentVolume) {
			setDefault(&v.Status.Phase, corev1.VolumePending)
			setDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
			setPointer(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
			roundUp(v.Spec.Capacity)
			if v.Spec.HostPath != nil {
				setPointer(&v.Spec.HostPath.Type, corev1.HostPathUnset)
			}
		}),
		PrepareForCreate: preparer(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumePending }),
		Validate:         validator(validatePersistentVolume),
		ValidateUpdate: updateValidator(func(v, old *corev1.PersistentVolume) field.ErrorList {
			if apiequality.Semantic.DeepEqual(v.Spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource) {
				return immutable(specPath.Child("volumeMode"), v.Spec.VolumeMode, old.Spec.VolumeMode)
			}
			return field.ErrorList{field.Forbidden(specPath.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation")}
		}),
	}
	r.Subresources = []Subresource{unjudged(statusOf(r, func(v, old *corev1.PersistentVolume) { v.Spec = old.Spec }))}
	r.Columns = columns([]string{"Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass", "VolumeAttributesClass", "Reason", "Age"}, "VolumeMode")
	r.Row = cells(persistentVolumeRow)
	return r
}

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	faults := accessModes(specPath.Child("accessModes"), v.Spec.AccessModes)
	if len(v.Spec.Capacity) == 0 {
		faults = append(faults, field.Required(specPath.Child("capacity"), ""))
	} else if size, ok := v.Spec.Capacity[corev1.ResourceStorage]; !ok || len(v.Spec.Capacity) > 1 {
		faults = append(faults, field.NotSupported(specPath.Child("capacity"), v.Spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	} else if size.Sign() <= 0 {
		faults = append(faults, field.Invalid(specPath.Child("capacity").Key("storage"), size.String(), "must be greater than zero"))
	}
	if v.Spec.PersistentVolumeSource == (corev1.PersistentVolumeSource{}) {
		faults = append(faults, field.Required(specPath, "must specify a volume type"))
	}
	return append(faults, oneOf(specPath.Child("persistentVolumeReclaimPolicy"), v.Spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
}

func accessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "at least 1 access mode is required")}
	}
	var faults field.ErrorList
	for _, m := range modes {
		faults = append(faults, oneOf(path, m, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
	}
	if len(modes) > 1 && slices.Contains(modes, corev1.ReadWriteOncePod) {
		faults = append(faults, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return faults
}

func persistentVolumeRow(v *corev1.PersistentVolume, now time.Time) []any {
	claim := ""
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	size := v.Spec.Capacity[corev1.ResourceStorage]
	return []any{
		v.Name, size.String(), shortModes(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), volumePhase(&v.ObjectMeta, string(v.Status.Phase)),
		claim, classOf(&v.ObjectMeta, &v.Spec.StorageClassName), pointed(v.Spec.VolumeAttributesClassName), v.Status.Reason, age(&v.ObjectMeta, now), pointed(v.Spec.VolumeMode),
	}
}

func shortModes(modes []corev1.PersistentVolumeAccessMode) string {
	short := map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX", corev1.ReadWriteOncePod: "RWOP",
	}
	var out []string
	for _, m := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod} {
		if slices.Contains(modes, m) {
			out = append(out, short[m])
		}
	}
	return strings.Join(out, ",")
}

func volumePhase(meta *metav1.ObjectMeta, phase string) string {
	if meta.DeletionTimestamp != nil {
		return "Terminating"
	}
	return phase
}

// classOf is the storage class; an annotation named it before there was a field.
func classOf(meta *metav1.ObjectMeta, class *string) string {
	if old, ok := meta.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return old
	}
	if class == nil {
		return ""
	}
	return *class
}

func pointed[T ~string](s *T) string {
	if s == nil {
		return unset
	}
	return string(*s)
}

// persistentVolumeClaims. Not yet: the default storage class and the protecting finalizer (they come
// with the volume controllers), resizing rules, data sources.
func persistentVolumeClaims() *Resource {
	r := newRow[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](corev1.SchemeGroupVersion, "persistentvolumeclaims", "PersistentVolumeClaim")
	r.ShortNames = []string{"pvc"}
	r.Strategy = Strategy{
		NoGeneration:     true,
		ReturnDeleted:    true,
		Default:          defaulter(defaultClaim),
		PrepareForCreate: preparer(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }),
		Validate:         validator(validateClaim),
		ValidateUpdate:   updateValidator(validateClaimUpdate),
	}
	r.Subresources = []Subresource{unjudged(statusOf(r, func(c, old *corev1.PersistentVolumeClaim) { c.Spec = old.Spec }))}
	r.Columns = columns([]string{"Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"}, "VolumeMode")
	r.Row = cells(claimRow)
	return r
}

func defaultClaim(c *corev1.PersistentVolumeClaim) {
	setDefault(&c.Status.Phase, corev1.ClaimPending)
	defaultClaimSpec(&c.Spec)
}

func validateClaim(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return validateClaimSpec(specPath, &c.Spec)
}

// validateClaimSpec judges what claims, ephemeral volumes and the claim templates of stateful sets share.
func validateClaimSpec(at *field.Path, s *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	faults := accessModes(at.Child("accessModes"), s.AccessModes)
	path := at.Child("resources").Key(string(corev1.ResourceStorage)) // the path that Kubernetes gives
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		faults = append(faults, field.Required(path, ""))
	} else if size.Sign() <= 0 {
		faults = append(faults, field.Invalid(path, size.String(), "must be greater than zero"))
	}
	if class := s.StorageClassName; class != nil && *class != "" {
		faults = append(faults, dnsSubdomain(at.Child("storageClassName"), *class)...)
	}
	return faults
}

// validateClaimUpdate: a claim may be bound once, grow, and change its attributes class.
func validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	rest := c.Spec.DeepCopy()
	if old.Spec.VolumeName == "" {
		rest.VolumeName = ""
	}
	if old.Spec.StorageClassName == nil {
		rest.StorageClassName = nil
	}
	rest.Resources.Requests, rest.VolumeAttributesClassName = old.Spec.Resources.Requests, old.Spec.VolumeAttributesClassName
	var faults field.ErrorList
	if !apiequality.Semantic.DeepEqual(*rest, old.Spec) {
		faults = append(faults, field.Forbidden(specPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	size, was := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(was) < 0 {
		faults = append(faults, field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	return faults
}

func claimRow(c *corev1.PersistentVolumeClaim, now time.Time) []any {
	capacity, modes := "", ""
	if c.Spec.VolumeName != "" {
		size := c.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = size.String(), shortModes(c.Status.AccessModes)
	}
	return []any{
		c.Name, volumePhase(&c.ObjectMeta, string(c.Status.Phase)), c.Spec.VolumeName, capacity, modes,
		classOf(&c.ObjectMeta, c.Spec.StorageClassName), pointed(c.Spec.VolumeAttributesClassName), age(&c.ObjectMeta, now), pointed(c.Spec.VolumeMode),
	}
}
