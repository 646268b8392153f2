package registry

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// persistentVolumes. What is refused is in persistentvolume_validation.go; the finalizer that protects
// a volume in use comes from admission.
func persistentVolumes() *Resource {
	r := newRow[corev1.PersistentVolume, corev1.PersistentVolumeList](corev1.SchemeGroupVersion, "persistentvolumes", "PersistentVolume")
	r.ShortNames, r.Namespaced = []string{"pv"}, false
	r.Strategy = Strategy{
		NoGeneration:     true,
		Warnings:         warnings(persistentVolumeWarnings),
		ReturnDeleted:    true,
		Default:          defaulter(defaultPersistentVolume),
		PrepareForCreate: preparer(func(v *corev1.PersistentVolume) { enterPhase(v, corev1.VolumePending) }),
		Validate:         validator(validatePersistentVolume),
		ValidateUpdate:   updateValidator(validatePersistentVolumeUpdate),
	}
	r.Subresources = []Subresource{unjudged(statusOf(r, keepVolumeSpec))}
	r.Fields = fieldSet(func(v *corev1.PersistentVolume) fields.Set { return fields.Set{"name": v.Name} })
	r.Columns = columns([]string{"Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass", "VolumeAttributesClass", "Reason", "Age"}, "VolumeMode")
	r.Row = cells(persistentVolumeRow)
	return r
}

func defaultPersistentVolume(v *corev1.PersistentVolume) {
	setDefault(&v.Status.Phase, corev1.VolumePending)
	setDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	setPointer(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(v.Spec.Capacity)
	defaultVolumeSource(&v.Spec.PersistentVolumeSource)
}

// defaultVolumeSource is what the drivers of old took for granted.
func defaultVolumeSource(s *corev1.PersistentVolumeSource) {
	if s.HostPath != nil {
		setPointer(&s.HostPath.Type, corev1.HostPathUnset)
	}
	if s.RBD != nil {
		setDefault(&s.RBD.RBDPool, "rbd")
		setDefault(&s.RBD.RadosUser, "admin")
		setDefault(&s.RBD.Keyring, "/etc/ceph/keyring")
	}
	if s.ISCSI != nil {
		setDefault(&s.ISCSI.ISCSIInterface, "default")
	}
	if s.AzureDisk != nil {
		setPointer(&s.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setPointer(&s.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		setPointer(&s.AzureDisk.FSType, "ext4")
		setPointer(&s.AzureDisk.ReadOnly, false)
	}
	if s.ScaleIO != nil {
		setDefault(&s.ScaleIO.StorageMode, "ThinProvisioned")
		setDefault(&s.ScaleIO.FSType, "xfs")
	}
}

// enterPhase notes when the volume entered it.
func enterPhase(v *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	now := metav1.Now()
	v.Status.Phase, v.Status.LastPhaseTransitionTime = phase, &now
}

// keepVolumeSpec lets a status write change the phase; unless the writer says when that was, it is now.
func keepVolumeSpec(v, old *corev1.PersistentVolume) {
	v.Spec = old.Spec
	at := &v.Status.LastPhaseTransitionTime
	switch changed := v.Status.Phase != old.Status.Phase; {
	case !changed && *at == nil:
		*at = old.Status.LastPhaseTransitionTime
	case changed && (*at == nil || (*at).Equal(old.Status.LastPhaseTransitionTime)):
		enterPhase(v, v.Status.Phase)
	}
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
