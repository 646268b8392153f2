package registry

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// persistentVolumeClaims. What is refused is in persistentvolumeclaim_validation.go; the default storage
// class and the protecting finalizer come from admission.
func persistentVolumeClaims() *Resource {
	r := newRow[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](corev1.SchemeGroupVersion, "persistentvolumeclaims", "PersistentVolumeClaim")
	r.ShortNames = []string{"pvc"}
	r.Strategy = Strategy{
		NoGeneration:  true,
		Warnings:      warnings(persistentVolumeClaimWarnings),
		ReturnDeleted: true,
		Default:       defaulter(defaultClaim),
		PrepareForCreate: preparer(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimPending
			settleDataSource(&c.Spec, &corev1.PersistentVolumeClaimSpec{})
		}),
		PrepareForUpdate: updatePreparer(func(c, old *corev1.PersistentVolumeClaim) { settleDataSource(&c.Spec, &old.Spec) }),
		Validate:         validator(validateClaim),
		ValidateUpdate:   updateValidator(validateClaimUpdate),
	}
	r.Subresources = []Subresource{judged(statusOf(r, keepClaimSpec), validateClaimStatus)}
	r.Fields = fieldSet(func(c *corev1.PersistentVolumeClaim) fields.Set { return fields.Set{"name": c.Name} })
	r.Columns = columns([]string{"Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"}, "VolumeMode")
	r.Row = cells(claimRow)
	return r
}

func defaultClaim(c *corev1.PersistentVolumeClaim) {
	setDefault(&c.Status.Phase, corev1.ClaimPending)
	defaultClaimSpec(&c.Spec)
}

// keepClaimSpec also drops what is behind the feature gate CSIVolumeHealth, which is off.
func keepClaimSpec(c, old *corev1.PersistentVolumeClaim) {
	c.Spec = old.Spec
	if old.Status.HealthStatus == nil {
		c.Status.HealthStatus = nil
	}
}

// settleDataSource: of dataSource and dataSourceRef, the one that is missing follows the other (KEP 1495).
// dataSource alone can only be a claim or a snapshot; others were always ignored. References into other
// namespaces are behind the feature gate CrossNamespaceVolumeDataSource, which is off.
func settleDataSource(s, old *corev1.PersistentVolumeClaimSpec) {
	if ref := s.DataSourceRef; ref != nil && ref.Namespace != nil && *ref.Namespace != "" && old.DataSourceRef == nil {
		s.DataSourceRef = nil
	}
	if old.DataSource == nil && old.DataSourceRef == nil && s.DataSourceRef == nil && !claimOrSnapshot(s.DataSource) {
		s.DataSource = nil
	}
	switch from, ref := s.DataSource, s.DataSourceRef; {
	case from != nil && ref == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: from.APIGroup, Kind: from.Kind, Name: from.Name}
	case from == nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == ""):
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

func claimOrSnapshot(from *corev1.TypedLocalObjectReference) bool {
	if from == nil {
		return false
	}
	group := ""
	if from.APIGroup != nil {
		group = *from.APIGroup
	}
	return from.Kind == "PersistentVolumeClaim" && group == "" || from.Kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io"
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
