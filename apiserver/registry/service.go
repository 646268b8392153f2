package registry

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// services. Cluster IPs and node ports are chosen in service_allocate.go.
func services(options Options) *Resource {
	allocator := serviceAllocator(options)
	r := newRow[corev1.Service, corev1.ServiceList](corev1.SchemeGroupVersion, "services", "Service")
	r.ShortNames = []string{"svc"}
	r.Categories = []string{"all"}
	r.Prefix = "/registry/services/specs"
	r.Strategy = Strategy{
		ValidateName:        apivalidation.NameIsDNSLabel,
		Warnings:            warnings(serviceWarnings),
		NoGeneration:        true,
		ReturnDeleted:       true,
		AllowCreateOnUpdate: true,
		Default:             defaulter(defaultService),
		PrepareForCreate:    preparer(allocator.prepareServiceCreate),
		PrepareForUpdate:    updatePreparer(allocator.prepareServiceUpdate),
		Validate:            validator(allocator.validate),
		ValidateUpdate:      updateValidator(validateServiceUpdate),
		Claims:              func(obj runtime.Object) []string { return serviceClaims(obj.(*corev1.Service)) },
		ShowClaim:           showClusterIP,
		Allocate:            allocator.allocate,
	}
	r.Subresources = []Subresource{
		connectTo("proxy", "ServiceProxyOptions", "create", "delete", "get", "patch", "update"),
		statusOf(r, func(s, old *corev1.Service) { s.Spec = old.Spec }),
	}
	r.Fields = fieldSet(func(s *corev1.Service) fields.Set {
		return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
	})
	r.Columns, r.Row = serviceColumns, cells(serviceRow)
	return r
}
