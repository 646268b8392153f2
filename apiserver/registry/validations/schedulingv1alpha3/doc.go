// Package schedulingv1alpha3 has the validation of the types that k8s.io/api/batch/v1 borrows from
// k8s.io/api/scheduling/v1alpha3: see the package above. The group itself is not served.
//
// +k8s:validation-gen=TypesWithField=TypeMeta
// +k8s:validation-gen-input=k8s.io/api/scheduling/v1alpha3
package schedulingv1alpha3

import "k8s.io/apimachinery/pkg/runtime"

// localSchemeBuilder is what the generated code registers itself with; nobody reads it.
var localSchemeBuilder runtime.SchemeBuilder
