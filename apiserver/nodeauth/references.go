package nodeauth

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// references are the names of what a pod needs, in its namespace.
type references struct {
	secrets, configMaps, claims, resourceClaims []string
}

// referencesOf finds references by their Go types, wherever in the pod's spec they stand.
func referencesOf(pod *corev1.Pod) (out references) {
	out.collect(reflect.ValueOf(pod.Spec))
	for _, v := range pod.Spec.Volumes {
		if v.Ephemeral != nil {
			out.claims = append(out.claims, pod.Name+"-"+v.Name) // how generic ephemeral volumes name their claims
		}
	}
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			out.resourceClaims = append(out.resourceClaims, *claim.ResourceClaimName)
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses { // of templates
		if made.ResourceClaimName != nil {
			out.resourceClaims = append(out.resourceClaims, *made.ResourceClaimName)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		out.resourceClaims = append(out.resourceClaims, extended.ResourceClaimName)
	}
	return out
}

// NeedsObjects says whether a pod refers to secrets, config maps or claims at all. One that a node writes must not: the node
// would be given them.
func NeedsObjects(pod *corev1.Pod) bool {
	r := referencesOf(pod)
	return len(r.secrets)+len(r.configMaps)+len(r.claims)+len(pod.Spec.ResourceClaims) > 0
}

func (r *references) collect(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.collect(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.collect(v.Index(i))
		}
	case reflect.Struct:
		r.note(v.Interface())
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() { // as those of a Quantity, which cannot be looked at
				continue
			}
			if ref, ok := v.Field(i).Interface().(*corev1.LocalObjectReference); ok && ref != nil {
				r.secrets = append(r.secrets, ref.Name) // such fields of volumes are all called SecretRef, or NodePublishSecretRef
			}
			if field.Type != quantities {
				r.collect(v.Field(i))
			}
		}
	}
}

var quantities = reflect.TypeFor[corev1.ResourceList]()

// note takes down what one part of a spec refers to.
func (r *references) note(part any) {
	switch p := part.(type) {
	case corev1.PodSpec:
		for _, ref := range p.ImagePullSecrets {
			r.secrets = append(r.secrets, ref.Name)
		}
	case corev1.SecretVolumeSource:
		r.secrets = append(r.secrets, p.SecretName)
	case corev1.SecretProjection:
		r.secrets = append(r.secrets, p.Name)
	case corev1.SecretKeySelector:
		r.secrets = append(r.secrets, p.Name)
	case corev1.SecretEnvSource:
		r.secrets = append(r.secrets, p.Name)
	case corev1.AzureFileVolumeSource:
		r.secrets = append(r.secrets, p.SecretName)
	case corev1.ConfigMapVolumeSource:
		r.configMaps = append(r.configMaps, p.Name)
	case corev1.ConfigMapProjection:
		r.configMaps = append(r.configMaps, p.Name)
	case corev1.ConfigMapKeySelector:
		r.configMaps = append(r.configMaps, p.Name)
	case corev1.ConfigMapEnvSource:
		r.configMaps = append(r.configMaps, p.Name)
	case corev1.PersistentVolumeClaimVolumeSource:
		r.claims = append(r.claims, p.ClaimName)
	}
}

// secretName is a secret of any namespace.
type secretName struct{ namespace, name string }

// secretsOf are the secrets that a node needs to mount a volume of a CSI driver, the only persistent ones that agents here mount.
// Those by which controllers publish and expand it are not for nodes.
func secretsOf(v *corev1.PersistentVolume) []secretName {
	if v.Spec.CSI == nil {
		return nil
	}
	var out []secretName
	for _, ref := range []*corev1.SecretReference{v.Spec.CSI.NodePublishSecretRef, v.Spec.CSI.NodeStageSecretRef, v.Spec.CSI.NodeExpandSecretRef} {
		if ref != nil {
			out = append(out, secretName{ref.Namespace, ref.Name})
		}
	}
	return out
}
