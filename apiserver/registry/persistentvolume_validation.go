package registry

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	s := &v.Spec
	var faults field.ErrorList
	if len(s.AccessModes) == 0 {
		faults = append(faults, field.Required(specPath.Child("accessModes"), ""))
	}
	faults = append(faults, accessModes(specPath.Child("accessModes"), s.AccessModes)...)
	faults = append(faults, volumeCapacity(specPath.Child("capacity"), s.Capacity)...)
	if s.PersistentVolumeReclaimPolicy != "" {
		faults = append(faults, supported(specPath.Child("persistentVolumeReclaimPolicy"), s.PersistentVolumeReclaimPolicy,
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	}
	if a := s.NodeAffinity; a != nil && a.Required != nil {
		faults = append(faults, nodeSelector(specPath.Child("nodeAffinity", "required"), a.Required)...)
	} else if a != nil {
		faults = append(faults, field.Required(specPath.Child("nodeAffinity", "required"), "must specify required node constraints"))
	}
	faults = append(faults, validateVolumeSources(specPath, v)...)
	if s.HostPath != nil && path.Clean(s.HostPath.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		faults = append(faults, field.Forbidden(specPath.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
	}
	if s.StorageClassName != "" {
		faults = append(faults, dnsSubdomain(specPath.Child("storageClassName"), s.StorageClassName)...)
	}
	faults = append(faults, volumeMode(specPath.Child("volumeMode"), s.VolumeMode)...)
	return append(faults, volumeAttributes(s)...)
}

func volumeCapacity(path *field.Path, capacity corev1.ResourceList) field.ErrorList {
	var faults field.ErrorList
	if len(capacity) == 0 {
		faults = append(faults, field.Required(path, ""))
	}
	if _, ok := capacity[corev1.ResourceStorage]; !ok || len(capacity) > 1 {
		faults = append(faults, field.NotSupported(path, capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for name, amount := range inOrder(capacity) {
		at := path.Key(string(name))
		faults = append(faults, validAmount(at, amount)...)
		faults = append(faults, positiveAmount(at, amount)...)
	}
	return faults
}

// accessModes. A list that must not be empty is its owner's business, whose words differ.
func accessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	var faults field.ErrorList
	known := []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	shared := false
	for _, m := range modes {
		faults = append(faults, supported(path, m, known...)...)
		shared = shared || m != corev1.ReadWriteOncePod && slices.Contains(known, m)
	}
	if shared && slices.Contains(modes, corev1.ReadWriteOncePod) {
		faults = append(faults, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return faults
}

func volumeMode(path *field.Path, mode *corev1.PersistentVolumeMode) field.ErrorList {
	if mode == nil {
		return nil
	}
	return supported(path, *mode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}

// volumeAttributes: only CSI drivers know classes of attributes.
func volumeAttributes(s *corev1.PersistentVolumeSpec) field.ErrorList {
	class := s.VolumeAttributesClassName
	if class == nil {
		return nil
	}
	at := specPath.Child("volumeAttributesClassName")
	var faults field.ErrorList
	if *class == "" {
		faults = append(faults, field.Required(at, "an empty string is disallowed"))
	} else {
		faults = append(faults, dnsSubdomain(at, *class)...)
	}
	if s.CSI == nil {
		faults = append(faults, field.Required(specPath.Child("csi"), "has to be specified when using volumeAttributesClassName"))
	}
	return faults
}

// validatePersistentVolumeUpdate: the data does not move. A secret for growing the volume may be added.
func validatePersistentVolumeUpdate(v, old *corev1.PersistentVolume) field.ErrorList {
	source, was := v.Spec.PersistentVolumeSource.DeepCopy(), &old.Spec.PersistentVolumeSource
	if source.CSI != nil && was.CSI != nil && was.CSI.ControllerExpandSecretRef == nil {
		source.CSI.ControllerExpandSecretRef = nil
	}
	var faults field.ErrorList
	if !apiequality.Semantic.DeepEqual(source, was) {
		faults = append(faults, field.Forbidden(specPath.Child("persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n"+diff.Diff(shown(was), shown(source))))
	}
	faults = append(faults, immutable(field.NewPath("volumeMode"), v.Spec.VolumeMode, old.Spec.VolumeMode)...) // the path that Kubernetes gives
	if a := old.Spec.NodeAffinity; a != nil && !apiequality.Semantic.DeepEqual(a, v.Spec.NodeAffinity) {
		faults = append(faults, immutable(field.NewPath("nodeAffinity"), v.Spec.NodeAffinity, a)...)
	}
	if old.Spec.VolumeAttributesClassName != nil && v.Spec.VolumeAttributesClassName == nil {
		faults = append(faults, field.Forbidden(specPath.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden"))
	}
	return faults
}
