package registry

import (
	"encoding/json"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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

func validateNode(n *corev1.Node) field.ErrorList {
	faults := validateTaints(field.NewPath("metadata", "taints"), n.Spec.Taints) // the path that Kubernetes gives
	for i, cidr := range n.Spec.PodCIDRs {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			faults = append(faults, field.Invalid(specPath.Child("podCIDRs").Index(i), cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
		}
	}
	for list, amounts := range inOrder(map[string]corev1.ResourceList{"capacity": n.Status.Capacity, "allocatable": n.Status.Allocatable}) {
		for name, quantity := range inOrder(amounts) {
			if quantity.Sign() < 0 {
				faults = append(faults, field.Invalid(field.NewPath("status", list, string(name)), quantity.String(), "must be greater than or equal to 0"))
			}
		}
	}
	return faults
}

func validateTaints(path *field.Path, taints []corev1.Taint) field.ErrorList {
	var faults field.ErrorList
	seen := map[corev1.Taint]bool{}
	for i, t := range taints {
		at := path.Index(i)
		faults = append(faults, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		if m := validation.IsValidLabelValue(t.Value); len(m) > 0 {
			faults = append(faults, field.Invalid(at.Child("value"), t.Value, strings.Join(m, ";")))
		}
		faults = append(faults, taintEffect(at.Child("effect"), t.Effect)...)
		key := corev1.Taint{Key: t.Key, Effect: t.Effect}
		if seen[key] {
			twice := field.Duplicate(at, t)
			twice.Detail = "taints must be unique by key and effect pair"
			faults = append(faults, twice)
		}
		seen[key] = true
	}
	return faults
}

func validateNodeUpdate(n, old *corev1.Node) field.ErrorList {
	var faults field.ErrorList
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(n.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		faults = append(faults, field.Forbidden(specPath.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if was := old.Spec.ProviderID; was != "" && n.Spec.ProviderID != was {
		faults = append(faults, field.Invalid(specPath.Child("providerID"), nil, "field cannot be modified once set"))
	}
	return faults
}
