package aggregation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver/discovery"
	"kontiki/apiserver/registry"
)

// managedLabel marks the APIServices that API servers make, and says how they keep them (kube-aggregator's autoregister): those
// of built-in group versions are brought up to date when a server starts, those of custom resources always. Without it
// an APIService is its owner's alone.
const (
	managedLabel     = "kube-aggregator.kubernetes.io/automanaged"
	managedOnStart   = "onstart"
	managedForCustom = "true"
)

// Local are the APIServices of what a table has.
func Local(table *registry.Table) map[string]*apiregistrationv1.APIService {
	out := map[string]*apiregistrationv1.APIService{}
	for _, r := range table.Resources() {
		gv := r.GroupVersion()
		if gv.Group == apiregistrationv1.GroupName { // which has none, in Kubernetes too
			continue
		}
		s := local(gv, r.Model != nil)
		if out[s.Name] == nil || r.Model == nil {
			out[s.Name] = s
		}
	}
	return out
}

func local(gv schema.GroupVersion, custom bool) *apiregistrationv1.APIService {
	managed := managedOnStart
	if custom {
		managed = managedForCustom
	}
	priority := discovery.DefaultPriority(gv)
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group, Labels: map[string]string{managedLabel: managed}},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: priority.Group, VersionPriority: priority.Version,
		},
	}
}

// Plan is what has to be done so that the APIServices of this server's own group versions are there.
type Plan struct {
	Create []*apiregistrationv1.APIService
	Update []*apiregistrationv1.APIService // the object as it is to be, by name and UID
	Delete []*apiregistrationv1.APIService
}

// NewPlan compares what there should be with what there is. starting says that it is the first time for this server.
func NewPlan(wanted, present map[string]*apiregistrationv1.APIService, starting bool) (p Plan) {
	for name, w := range wanted {
		is := present[name]
		switch {
		case is == nil:
			p.Create = append(p.Create, w)
		case mayManage(is, starting) && !equality.Semantic.DeepEqual(is.Spec, w.Spec):
			next := is.DeepCopy()
			next.Spec = w.Spec
			p.Update = append(p.Update, next)
		}
	}
	for name, is := range present {
		if wanted[name] == nil && mayManage(is, starting) {
			p.Delete = append(p.Delete, is)
		}
	}
	return p
}

func mayManage(s *apiregistrationv1.APIService, starting bool) bool {
	managed := s.Labels[managedLabel]
	return managed == managedForCustom || managed == managedOnStart && starting
}

// Custom says whether an APIService was made for custom resources.
func Custom(s *apiregistrationv1.APIService) bool { return s.Labels[managedLabel] == managedForCustom }

// Unsettled are the APIServices of this server's own group versions that are not said to be available.
func Unsettled(present map[string]*apiregistrationv1.APIService) (out []*apiregistrationv1.APIService) {
	for _, s := range present {
		if !isRemote(s) && !conditionOf(s).isTrue() {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *apiregistrationv1.APIService) int { return strings.Compare(a.Name, b.Name) })
	return out
}
