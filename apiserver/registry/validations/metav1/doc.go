// Package metav1 has the validation that the +k8s: tags of k8s.io/apimachinery/pkg/apis/meta/v1 ask
// for: see the package above.
//
// +k8s:validation-gen=TypesWithField=TypeMeta
// +k8s:validation-gen-input=k8s.io/apimachinery/pkg/apis/meta/v1
package metav1

import (
	"context"

	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateCustom_Condition_LastTransitionTime is called by the generated code.
func ValidateCustom_Condition_LastTransitionTime(ctx context.Context, op operation.Operation, path *field.Path, value, old *metav1.Time) field.ErrorList {
	return validation.ValidateCustom_Condition_LastTransitionTime(ctx, op, path, value, old)
}
