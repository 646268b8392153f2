// Package validations holds the validation that Kubernetes declares on its types: the +k8s: tags of
// k8s.io/api (required, immutable, maxItems, format, union …), compiled by code-generator's
// validation-gen. There is a package for each group and version, with generated code only but for its
// doc.go; AddToScheme here gives a scheme all of it, to be run by the scheme's Validate and ValidateUpdate.
//
// What the tags do not say yet is written by hand in package registry, which merges the two: see
// registry/declared.go. `make validations` (the script generate) writes the code anew after k8s.io/api has changed.
package validations

import (
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/registry/validations/admissionregistrationv1"
	"kontiki/apiserver/registry/validations/appsv1"
	"kontiki/apiserver/registry/validations/authorizationv1"
	"kontiki/apiserver/registry/validations/autoscalingv1"
	"kontiki/apiserver/registry/validations/autoscalingv2"
	"kontiki/apiserver/registry/validations/batchv1"
	"kontiki/apiserver/registry/validations/certificatesv1"
	"kontiki/apiserver/registry/validations/coordinationv1"
	"kontiki/apiserver/registry/validations/corev1"
	"kontiki/apiserver/registry/validations/discoveryv1"
	"kontiki/apiserver/registry/validations/eventsv1"
	"kontiki/apiserver/registry/validations/flowcontrolv1"
	"kontiki/apiserver/registry/validations/networkingv1"
	"kontiki/apiserver/registry/validations/nodev1"
	"kontiki/apiserver/registry/validations/policyv1"
	"kontiki/apiserver/registry/validations/rbacv1"
	"kontiki/apiserver/registry/validations/resourcev1"
	"kontiki/apiserver/registry/validations/schedulingv1"
	"kontiki/apiserver/registry/validations/storagemigrationv1"
	"kontiki/apiserver/registry/validations/storagev1"
)

// AddToScheme gives s the declared validation of all stable built-in types.
func AddToScheme(s *runtime.Scheme) error {
	builder := runtime.SchemeBuilder{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, authorizationv1.AddToScheme,
		autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
		flowcontrolv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme, storagemigrationv1.AddToScheme,
		storagev1.AddToScheme,
	}
	return builder.AddToScheme(s)
}
