// Package autoscalingv1 has the validation that the +k8s: tags of k8s.io/api/autoscaling/v1 ask for: see the package above.
//
// +k8s:validation-gen=TypesWithField=TypeMeta
// +k8s:validation-gen-input=k8s.io/api/autoscaling/v1
package autoscalingv1

import "k8s.io/apimachinery/pkg/runtime"

// localSchemeBuilder is what the generated code registers itself with.
var localSchemeBuilder runtime.SchemeBuilder

// AddToScheme gives s the validation of the group's types.
func AddToScheme(s *runtime.Scheme) error { return localSchemeBuilder.AddToScheme(s) }
