package discovery

import (
	"cmp"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Others is what other servers add to the documents, at one moment; nothing in it changes.
type Others struct {
	// Priorities are those of group versions that do not have the default ones.
	Priorities map[schema.GroupVersion]Priority
	// Versions are the group versions that another server serves, in the place of this one if this one has them too.
	Versions map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery
}

// Priority says where clients meet a group among the others (that of its highest version counts), and a version in its group:
// higher ones first (APIServiceSpec.groupPriorityMinimum and versionPriority).
type Priority struct{ Group, Version int32 }

// CustomPriority is that of custom resources, as in Kubernetes.
var CustomPriority = Priority{1000, 100}

// registration comes before all others, whatever these say: it is where the order is from.
var registration = schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}

// builtinPriorities are kube-apiserver's own (cmd/kube-apiserver/app/aggregator.go).
var builtinPriorities = map[schema.GroupVersion]Priority{
	{Version: "v1"}:                                        {18000, 1},
	registration:                                           {20001, 0},
	{Group: "apps", Version: "v1"}:                         {17800, 15},
	{Group: "events.k8s.io", Version: "v1"}:                {17750, 15},
	{Group: "authentication.k8s.io", Version: "v1"}:        {17700, 15},
	{Group: "authorization.k8s.io", Version: "v1"}:         {17600, 15},
	{Group: "autoscaling", Version: "v2"}:                  {17500, 30},
	{Group: "autoscaling", Version: "v1"}:                  {17500, 15},
	{Group: "batch", Version: "v1"}:                        {17400, 15},
	{Group: "certificates.k8s.io", Version: "v1"}:          {17300, 15},
	{Group: "networking.k8s.io", Version: "v1"}:            {17200, 15},
	{Group: "policy", Version: "v1"}:                       {17100, 15},
	{Group: "rbac.authorization.k8s.io", Version: "v1"}:    {17000, 15},
	{Group: "storage.k8s.io", Version: "v1"}:               {16800, 15},
	{Group: "apiextensions.k8s.io", Version: "v1"}:         {16700, 15},
	{Group: "admissionregistration.k8s.io", Version: "v1"}: {16700, 15},
	{Group: "scheduling.k8s.io", Version: "v1"}:            {16600, 15},
	{Group: "coordination.k8s.io", Version: "v1"}:          {16500, 15},
	{Group: "node.k8s.io", Version: "v1"}:                  {16300, 15},
	{Group: "discovery.k8s.io", Version: "v1"}:             {16200, 15},
	{Group: "resource.k8s.io", Version: "v1"}:              {16200, 21},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}: {16100, 21},
	{Group: "storagemigration.k8s.io", Version: "v1"}:      {15800, 15},
}

// DefaultPriority is that of a group version which this server has: a built-in one, or one of custom resources.
func DefaultPriority(gv schema.GroupVersion) Priority {
	if p, ok := builtinPriorities[gv]; ok {
		return p
	}
	return CustomPriority
}

func (o *Others) priority(gv schema.GroupVersion) Priority {
	if p, ok := o.Priorities[gv]; ok && gv != registration {
		return p
	}
	return DefaultPriority(gv)
}

// sort puts groups and versions into the order in which clients meet them. Equal groups are ordered by the names of their
// APIServices (v1.a before v1.b), equal versions as v2, v1, v1beta1.
func (o *Others) sort(groups []group) {
	for _, g := range groups {
		slices.SortStableFunc(g.versions, func(a, b groupVersion) int {
			return cmp.Or(
				cmp.Compare(o.priority(b.of(g)).Version, o.priority(a.of(g)).Version),
				version.CompareKubeAwareVersionStrings(b.version, a.version),
			)
		})
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(o.groupPriority(b), o.groupPriority(a)), cmp.Compare(firstName(a), firstName(b)))
	})
}

func (o *Others) groupPriority(g group) (highest int32) {
	for _, v := range g.versions {
		highest = max(highest, o.priority(v.of(g)).Group)
	}
	return highest
}

func firstName(g group) string { return g.versions[0].version + "." + g.name }

func (v groupVersion) of(g group) schema.GroupVersion {
	return schema.GroupVersion{Group: g.name, Version: v.version}
}
