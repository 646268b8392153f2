package registry

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateEnv(path *field.Path, env []corev1.EnvVar) field.ErrorList {
	var faults field.ErrorList
	for i, e := range env {
		at := path.Index(i)
		if e.Name == "" {
			faults = append(faults, field.Required(at.Child("name"), ""))
		} else {
			faults = append(faults, invalid(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))...)
		}
		if e.ValueFrom != nil {
			faults = append(faults, validateEnvSource(at.Child("valueFrom"), e)...)
		}
	}
	return faults
}

// envFields are the fields of the pod that an environment variable can show.
var envFields = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

func validateEnvSource(path *field.Path, e corev1.EnvVar) field.ErrorList {
	var faults field.ErrorList
	from, sources := e.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		faults = append(faults, fieldRef(path.Child("fieldRef"), from.FieldRef, envFields)...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		faults = append(faults, required(path.Child("resourceFieldRef", "resource"), from.ResourceFieldRef.Resource)...)
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		faults = append(faults, keyRef(path.Child("configMapKeyRef"), from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)...)
	}
	if from.SecretKeyRef != nil {
		sources++
		faults = append(faults, keyRef(path.Child("secretKeyRef"), from.SecretKeyRef.Name, from.SecretKeyRef.Key)...)
	}
	if from.FileKeyRef != nil {
		sources++
	}
	switch {
	case sources == 0:
		faults = append(faults, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		faults = append(faults, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		faults = append(faults, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return faults
}

func keyRef(path *field.Path, name, key string) field.ErrorList {
	faults := required(path.Child("name"), name)
	if key == "" {
		return append(faults, field.Required(path.Child("key"), ""))
	}
	return append(faults, invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

// fieldRef: a field of the list, or one label or annotation as "metadata.labels['KEY']".
func fieldRef(path *field.Path, ref *corev1.ObjectFieldSelector, allowed []string) field.ErrorList {
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(path.Child("fieldPath"), "")}
	}
	base, rest, subscripted := strings.Cut(ref.FieldPath, "['")
	if key, ok := strings.CutSuffix(rest, "']"); subscripted && ok {
		switch base {
		case "metadata.annotations":
			return qualifiedName(path, strings.ToLower(key))
		case "metadata.labels":
			return qualifiedName(path, key)
		}
		return field.ErrorList{field.Invalid(path, base, "does not support subscript")}
	}
	return oneOf(path.Child("fieldPath"), ref.FieldPath, allowed...)
}

func validateEnvFrom(path *field.Path, sources []corev1.EnvFromSource) field.ErrorList {
	var faults field.ErrorList
	for i, s := range sources {
		at := path.Index(i)
		if s.Prefix != "" {
			faults = append(faults, invalid(at.Child("prefix"), s.Prefix, validation.IsRelaxedEnvVarName(s.Prefix))...)
		}
		switch {
		case s.ConfigMapRef != nil && s.SecretRef != nil:
			faults = append(faults, field.Invalid(path, "", "may not have more than one field specified at a time"))
		case s.ConfigMapRef != nil:
			faults = append(faults, required(at.Child("configMapRef", "name"), s.ConfigMapRef.Name)...)
		case s.SecretRef != nil:
			faults = append(faults, required(at.Child("secretRef", "name"), s.SecretRef.Name)...)
		default:
			faults = append(faults, field.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return faults
}
