package registry

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateClaim(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return validateClaimSpec(specPath, &c.Spec)
}

// validateClaimSpec judges what claims, ephemeral volumes and the claim templates of stateful sets share.
func validateClaimSpec(at *field.Path, s *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	var faults field.ErrorList
	if len(s.AccessModes) == 0 {
		faults = append(faults, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	if s.Selector != nil {
		faults = append(faults, metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	faults = append(faults, accessModes(at.Child("accessModes"), s.AccessModes)...)
	path := at.Child("resources").Key(string(corev1.ResourceStorage)) // the path that Kubernetes gives
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		faults = append(faults, field.Required(path, ""))
	} else {
		faults = append(faults, positiveAmount(path, size)...)
	}
	if class := s.StorageClassName; class != nil && *class != "" {
		faults = append(faults, dnsSubdomain(at.Child("storageClassName"), *class)...)
	}
	faults = append(faults, volumeMode(at.Child("volumeMode"), s.VolumeMode)...)
	faults = append(faults, dataSources(at, s)...)
	if class := s.VolumeAttributesClassName; class != nil && *class != "" {
		faults = append(faults, dnsSubdomain(at.Child("volumeAttributesClassName"), *class)...)
	}
	return faults
}

// dataSources are what a volume is filled with at first; the two fields say the same.
func dataSources(at *field.Path, s *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	var faults field.ErrorList
	from, ref := s.DataSource, s.DataSourceRef
	if from != nil {
		faults = append(faults, dataSource(at.Child("dataSource"), from.APIGroup, from.Kind, from.Name)...)
	}
	if ref == nil {
		return faults
	}
	faults = append(faults, dataSource(at.Child("dataSourceRef"), ref.APIGroup, ref.Kind, ref.Name)...)
	elsewhere := ref.Namespace != nil && *ref.Namespace != ""
	if elsewhere {
		faults = append(faults, dnsLabel(at.Child("dataSourceRef", "namespace"), *ref.Namespace)...)
	}
	switch {
	case from == nil:
	case elsewhere:
		faults = append(faults, field.Invalid(at, at.Child("dataSource"), "may not be specified when dataSourceRef.namespace is specified"))
	case from.Kind != ref.Kind || from.Name != ref.Name || !reflect.DeepEqual(from.APIGroup, ref.APIGroup):
		faults = append(faults, field.Invalid(at, at.Child("dataSource"), "must match dataSourceRef"))
	}
	return faults
}

func dataSource(path *field.Path, group *string, kind, name string) field.ErrorList {
	faults := requiredFields(path, "name", name, "kind", kind)
	switch {
	case group != nil && *group != "":
		faults = append(faults, dnsSubdomain(path.Child("apiGroup"), *group)...)
	case kind != "PersistentVolumeClaim":
		faults = append(faults, field.Invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	return faults
}

// validateClaimUpdate: a claim may be bound and given a class once; a bound one may grow and change its attributes
// class. Growing that failed may be taken back, to what the volume has.
func validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	faults := immutable(field.NewPath("metadata", "annotations").Key(corev1.BetaStorageClassAnnotation),
		c.Annotations[corev1.BetaStorageClassAnnotation], old.Annotations[corev1.BetaStorageClassAnnotation])
	if classFromAnnotation(c, old) {
		faults = nil
	}
	if rest := fixedPart(c, old); !apiequality.Semantic.DeepEqual(*rest, old.Spec) {
		faults = append(faults, field.Forbidden(specPath,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+diff.Diff(shown(old.Spec), shown(*rest))))
	}
	size, was, has := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage], old.Status.Capacity[corev1.ResourceStorage]
	if size.Cmp(was) < 0 && size.Cmp(has) <= 0 {
		faults = append(faults, field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	faults = append(faults, immutable(field.NewPath("volumeMode"), c.Spec.VolumeMode, old.Spec.VolumeMode)...) // the path that Kubernetes gives
	if class := c.Spec.VolumeAttributesClassName; old.Status.CurrentVolumeAttributesClassName != nil && old.Spec.VolumeAttributesClassName != nil {
		at := specPath.Child("volumeAttributesClassName")
		if class == nil {
			faults = append(faults, field.Forbidden(at, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"))
		} else if *class == "" && *old.Spec.VolumeAttributesClassName != "" {
			faults = append(faults, field.Forbidden(at, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"))
		}
	}
	return faults
}

// classFromAnnotation: the class moves from the annotation that named it before there was a field.
func classFromAnnotation(c, old *corev1.PersistentVolumeClaim) bool {
	was, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]
	now, still := c.Annotations[corev1.BetaStorageClassAnnotation]
	return annotated && old.Spec.StorageClassName == nil && c.Spec.StorageClassName != nil && *c.Spec.StorageClassName == was && (!still || now == was)
}

// fixedPart is c's spec with everything that may change as it was.
func fixedPart(c, old *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimSpec {
	rest := c.Spec.DeepCopy()
	if old.Spec.VolumeName == "" {
		rest.VolumeName = ""
	}
	named, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]
	if class := c.Spec.StorageClassName; old.Spec.StorageClassName == nil && class != nil && (!annotated || *class == named) {
		rest.StorageClassName = nil
	}
	if c.Status.Phase == corev1.ClaimBound {
		if rest.Resources.Requests != nil {
			rest.Resources.Requests = maps.Clone(rest.Resources.Requests)
			rest.Resources.Requests[corev1.ResourceStorage] = old.Spec.Resources.Requests[corev1.ResourceStorage]
		}
		rest.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	}
	return rest
}

// resizeStates are where growing a volume can be.
var resizeStates = []corev1.ClaimResourceStatus{
	corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
	corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible, corev1.PersistentVolumeClaimNodeResizePending,
}

// validateClaimStatus judges what the resizing controllers report.
func validateClaimStatus(c *corev1.PersistentVolumeClaim) field.ErrorList {
	var faults field.ErrorList
	status := field.NewPath("status")
	for name, amount := range inOrder(c.Status.Capacity) {
		faults = append(faults, validAmount(status.Child("capacity").Key(string(name)), amount)...)
	}
	at := status.Child("allocatedResourceStatuses")
	for name, state := range inOrder(c.Status.AllocatedResourceStatuses) {
		faults = append(faults, claimResource(at, name)...)
		if !slices.Contains(resizeStates, state) {
			faults = append(faults, field.NotSupported(at, name, resizeStates))
		}
	}
	at = status.Child("allocatedResources")
	for name, amount := range inOrder(c.Status.AllocatedResources) {
		if f := claimResource(at, name); len(f) > 0 {
			faults = append(faults, f...)
			continue
		}
		faults = append(faults, validAmount(at.Key(string(name)), amount)...)
	}
	return faults
}

// claimResource: of Kubernetes' own resources a claim has only storage.
func claimResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	if faults := qualifiedName(path, string(name)); len(faults) > 0 {
		return faults
	}
	if native(name) {
		return supported(path, string(name), string(corev1.ResourceStorage))
	}
	return nil
}
