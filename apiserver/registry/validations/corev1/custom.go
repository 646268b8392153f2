package corev1

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateCustom_EvictionResponder_Name keeps the names of Kubernetes' own responders out of pods. The
// generated code calls it.
func ValidateCustom_EvictionResponder_Name(_ context.Context, _ operation.Operation, path *field.Path, value, _ *string) field.ErrorList {
	if value == nil {
		return nil
	}
	domain, _, _ := strings.Cut(*value, "/")
	for _, reserved := range []string{".k8s.io", ".kubernetes.io"} {
		if strings.HasSuffix("."+strings.ToLower(domain), reserved) {
			return field.ErrorList{field.Forbidden(path, "domain names "+reserved[1:]+" are reserved")}
		}
	}
	return nil
}

// ValidateCustom_EvictionResponder_Priority keeps the priorities of Kubernetes' own responders.
func ValidateCustom_EvictionResponder_Priority(_ context.Context, _ operation.Operation, path *field.Path, value, _ *int32) field.ErrorList {
	if value != nil && *value >= 0 && *value < 1000 {
		return field.ErrorList{field.Invalid(path, *value, "priorities 0-999 are reserved for responders with *.k8s.io suffix")}
	}
	return nil
}
