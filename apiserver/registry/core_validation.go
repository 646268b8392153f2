package registry

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxData is how much a ConfigMap or Secret may hold, keys not counted: 1 MiB.
const maxData = corev1.MaxSecretSize

func validateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	var faults field.ErrorList
	data, binary := field.NewPath("data"), field.NewPath("binaryData")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		faults = append(faults, invalid(data.Key(key), key, validation.IsConfigMapKey(key))...)
		if _, twice := c.BinaryData[key]; twice {
			faults = append(faults, field.Invalid(data.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		faults = append(faults, invalid(binary.Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(c.BinaryData[key])
	}
	if size > maxData {
		faults = append(faults, field.TooLong(field.NewPath(""), "", maxData))
	}
	return faults
}

const immutableSet = "field is immutable when `immutable` is set"

func validateConfigMapUpdate(c, old *corev1.ConfigMap) field.ErrorList {
	if old.Immutable == nil || !*old.Immutable {
		return nil
	}
	faults := staysImmutable(c.Immutable)
	if !reflect.DeepEqual(c.Data, old.Data) {
		faults = append(faults, field.Forbidden(field.NewPath("data"), immutableSet))
	}
	if !reflect.DeepEqual(c.BinaryData, old.BinaryData) {
		faults = append(faults, field.Forbidden(field.NewPath("binaryData"), immutableSet))
	}
	return faults
}

func staysImmutable(flag *bool) field.ErrorList {
	if flag == nil || !*flag {
		return field.ErrorList{field.Forbidden(field.NewPath("immutable"), immutableSet)}
	}
	return nil
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	var faults field.ErrorList
	data := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		faults = append(faults, invalid(data.Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(s.Data[key])
	}
	if size > maxData {
		faults = append(faults, field.TooLong(data, "", maxData))
	}
	return append(faults, validateSecretType(data, s)...)
}

// validateSecretType: a secret of a known type has what its readers look for.
func validateSecretType(data *field.Path, s *corev1.Secret) field.ErrorList {
	has := func(key string) bool { _, ok := s.Data[key]; return ok }
	var faults field.ErrorList
	need := func(keys ...string) {
		for _, key := range keys {
			faults = append(faults, field.Required(data.Key(key), ""))
		}
	}
	jsonIn := func(key string) {
		if !has(key) {
			need(key)
		} else if err := json.Unmarshal(s.Data[key], &map[string]any{}); err != nil {
			faults = append(faults, field.Invalid(data.Key(key), "<secret contents redacted>", err.Error()))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			faults = append(faults, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		jsonIn(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		jsonIn(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			need(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			need(corev1.SSHAuthPrivateKey)
		}
	case corev1.SecretTypeTLS:
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if !has(key) {
				need(key)
			}
		}
	}
	return faults
}

func validateSecretUpdate(s, old *corev1.Secret) field.ErrorList {
	faults := immutable(field.NewPath("type"), s.Type, old.Type)
	if old.Immutable == nil || !*old.Immutable {
		return faults
	}
	faults = append(faults, staysImmutable(s.Immutable)...)
	if !reflect.DeepEqual(s.Data, old.Data) {
		faults = append(faults, field.Forbidden(field.NewPath("data"), immutableSet))
	}
	return faults
}
