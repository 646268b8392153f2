package registry

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// deviceSelectors compiles the expressions that choose devices, as allocation will. The rules are those of the API reference
// of resource.k8s.io/v1 DeviceSelector.
func deviceSelectors(path *field.Path, selectors []resourcev1.DeviceSelector) (faults field.ErrorList) {
	for i, s := range selectors {
		at := path.Index(i).Child("cel")
		if s.CEL == nil {
			faults = append(faults, field.Required(at, ""))
			continue
		}
		faults = append(faults, deviceExpression(at.Child("expression"), s.CEL.Expression)...)
	}
	return faults
}

func deviceExpression(path *field.Path, expression string) field.ErrorList {
	if len(expression) > resourcev1.CELSelectorExpressionMaxLength {
		return field.ErrorList{field.TooLong(path, "", resourcev1.CELSelectorExpressionMaxLength)}
	}
	result := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true}).CompileCELExpression(expression, dracel.Options{})
	switch fault := result.Error; {
	case fault != nil && fault.Type == apiservercel.ErrorTypeInternal:
		return field.ErrorList{field.InternalError(path, fault)}
	case fault != nil:
		return field.ErrorList{field.Invalid(path, expression, fault.Detail)}
	case result.MaxCost > resourcev1.CELSelectorExpressionMaxCost:
		return field.ErrorList{field.Forbidden(path, "too complex, exceeds cost limit")}
	}
	return nil
}
