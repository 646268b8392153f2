package nodeauth

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// references are the names of what a pod needs, in its namespace.
type references struct {
	secrets, configMaps, claims map[string]bool
}

// referencesOf finds references by their Go types, wherever in the pod's spec they stand.
func referencesOf(pod *corev1.Pod) references {
	out := references{secrets: map[string]bool{}, configMaps: map[string]bool{}, claims: map[string]bool{}}
	out.collect(reflect.ValueOf(pod.Spec))
	for _, v := range pod.Spec.Volumes {
		if v.Ephemeral != nil {
			out.claims[pod.Name+"-"+v.Name] = true // how generic ephemeral volumes name their claims
		}
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
			if ref, ok := v.Field(i).Interface().(*corev1.LocalObjectReference); ok && ref != nil {
				r.secrets[ref.Name] = true // such fields of volumes are all called SecretRef, or NodePublishSecretRef
			}
			if field.IsExported() && field.Type != quantities {
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
			r.secrets[ref.Name] = true
		}
	case corev1.SecretVolumeSource:
		r.secrets[p.SecretName] = true
	case corev1.SecretProjection:
		r.secrets[p.Name] = true
	case corev1.SecretKeySelector:
		r.secrets[p.Name] = true
	case corev1.SecretEnvSource:
		r.secrets[p.Name] = true
	case corev1.AzureFileVolumeSource:
		r.secrets[p.SecretName] = true
	case corev1.ConfigMapVolumeSource:
		r.configMaps[p.Name] = true
	case corev1.ConfigMapProjection:
		r.configMaps[p.Name] = true
	case corev1.ConfigMapKeySelector:
		r.configMaps[p.Name] = true
	case corev1.ConfigMapEnvSource:
		r.configMaps[p.Name] = true
	case corev1.PersistentVolumeClaimVolumeSource:
		r.claims[p.ClaimName] = true
	}
}
