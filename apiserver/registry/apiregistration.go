package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/validation"
)

func aggregationRows() []*Resource { return []*Resource{apiServices()} }

// apiServices say which server has which group version: this one, or one behind a Service (package aggregation).
func apiServices() *Resource {
	gv := apiregistrationv1.SchemeGroupVersion
	r := newRow[apiregistrationv1.APIService, apiregistrationv1.APIServiceList](gv, "apiservices", "APIService")
	r.Prefix = "/registry/apiregistration.k8s.io/apiservices" // like definitions, under their group
	r.Namespaced = false
	r.Categories = []string{"api-extensions"}
	r.Strategy = Strategy{
		Default:              defaulter(apiregistrationv1.SetObjectDefaults_APIService),
		PrepareForCreate:     preparer(prepareAPIService),
		ValidateName:         func(string, bool) []string { return nil }, // it follows from the spec, below
		Validate:             apiServiceFaults(validation.ValidateAPIService),
		NeedsResourceVersion: true,
		NoGeneration:         true,
	}
	status := sealed(statusOf(r, func(s, old *apiregistrationv1.APIService) { s.Spec = old.Spec }))
	status.Validate = func(ctx context.Context, obj, _ runtime.Object) field.ErrorList {
		return apiServiceFaults(func(_ context.Context, s *apiregistration.APIService) field.ErrorList {
			return validation.ValidateAPIServiceStatus(&s.Status, field.NewPath("status"))
		})(ctx, obj)
	}
	r.Subresources = []Subresource{status}
	r.Columns = columns([]string{"Name", "Service", "Available", "Age"})
	r.Row = cells(apiServiceRow)
	return r
}

// prepareAPIService: what this server has itself is available from the beginning.
func prepareAPIService(s *apiregistrationv1.APIService) {
	s.Status = apiregistrationv1.APIServiceStatus{}
	if s.Spec.Service == nil {
		helper.SetAPIServiceCondition(s, helper.NewLocalAvailableAPIServiceCondition())
	}
}

// apiServiceFaults runs Kubernetes' own validation. What that says of the metadata the generic path says too, but for names.
func apiServiceFaults(judge func(context.Context, *apiregistration.APIService) field.ErrorList) func(context.Context, runtime.Object) field.ErrorList {
	return func(ctx context.Context, obj runtime.Object) field.ErrorList {
		s := &apiregistration.APIService{}
		if err := apiregistrationv1.Convert_v1_APIService_To_apiregistration_APIService(obj.(*apiregistrationv1.APIService), s, nil); err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		return slices.DeleteFunc(judge(ctx, s), func(f *field.Error) bool {
			named := f.Field == "metadata.name" && s.Name != "" || strings.HasPrefix(f.Detail, "must be `spec.version")
			return strings.HasPrefix(f.Field, "metadata.") && !named
		})
	}
}

func apiServiceRow(s *apiregistrationv1.APIService, now time.Time) []any {
	service, available := "Local", string(apiregistrationv1.ConditionUnknown)
	if ref := s.Spec.Service; ref != nil {
		service = ref.Namespace + "/" + ref.Name
	}
	if c := helper.GetAPIServiceConditionByType(s, apiregistrationv1.Available); c != nil {
		available = string(c.Status)
		if c.Status != apiregistrationv1.ConditionTrue && c.Reason != "" {
			available = fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
	}
	return []any{s.Name, service, available, age(&s.ObjectMeta, now)}
}
