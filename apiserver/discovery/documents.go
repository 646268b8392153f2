package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/registry"
)

// document is one encoded answer.
type document struct {
	body []byte
	etag string // of the body, in quotes
}

// documents are all answers that one state of the table and of other servers gives, by path. Aggregated ones exist for
// /api and /apis only.
type documents struct {
	tableVersion      uint64
	others            *Others
	plain, aggregated map[string]document
}

// group is one API group.
type group struct {
	name     string
	versions []groupVersion // the preferred one first
}

type groupVersion struct {
	version   string
	resources []*registry.Resource                // what this server has, unless
	other     *apidiscoveryv2.APIVersionDiscovery // another one does
}

// groupsOf sorts the rows, and what others serve, by group and version (order.go).
func groupsOf(rows []*registry.Resource, others *Others) []group {
	var groups []group
	add := func(gv schema.GroupVersion) *groupVersion {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == gv.Group })
		if i < 0 {
			i, groups = len(groups), append(groups, group{name: gv.Group})
		}
		g := &groups[i]
		j := slices.IndexFunc(g.versions, func(v groupVersion) bool { return v.version == gv.Version })
		if j < 0 {
			j, g.versions = len(g.versions), append(g.versions, groupVersion{version: gv.Version})
		}
		return &g.versions[j]
	}
	for _, r := range rows {
		v := add(r.GroupVersion())
		v.resources = append(v.resources, r)
	}
	for gv, other := range others.Versions {
		add(gv).other = &other
	}
	others.sort(groups)
	for _, g := range groups {
		for _, v := range g.versions {
			slices.SortFunc(v.resources, func(a, b *registry.Resource) int { return cmp.Compare(a.Resource, b.Resource) })
		}
	}
	return groups
}

// render encodes every document for the present state of the table. The resources of a group version that another server
// has are that server's to tell, but for the aggregated documents.
func render(table *registry.Table, others *Others) (*documents, error) {
	d := &documents{tableVersion: table.Version(), others: others, plain: map[string]document{}, aggregated: map[string]document{}}
	groups := groupsOf(table.Resources(), others)

	plain := map[string]runtime.Object{"/api": coreVersions(groups), "/apis": groupList(groups)}
	for _, g := range groups {
		if g.name != "" {
			plain["/apis/"+g.name] = apiGroup(g)
		}
		for _, v := range g.versions {
			if v.other == nil {
				plain[versionPath(g, v)] = resourceList(v)
			}
		}
	}
	core, named := aggregate(groups)
	aggregated := map[string]runtime.Object{"/api": core, "/apis": named}

	for from, to := range map[*map[string]runtime.Object]map[string]document{&plain: d.plain, &aggregated: d.aggregated} {
		for path, obj := range *from {
			doc, err := encode(obj)
			if err != nil {
				return nil, fmt.Errorf("discovery document %s: %w", path, err)
			}
			to[path] = doc
		}
	}
	return d, nil
}

func encode(obj runtime.Object) (document, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return document{}, err
	}
	sum := sha256.Sum256(body)
	return document{body: append(body, '\n'), etag: `"` + hex.EncodeToString(sum[:16]) + `"`}, nil
}

func versionPath(g group, v groupVersion) string {
	if g.name == "" {
		return "/api/" + v.version
	}
	return "/apis/" + g.name + "/" + v.version
}

func coreVersions(groups []group) *metav1.APIVersions {
	out := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	for _, g := range groups {
		for _, v := range g.versions {
			if g.name == "" {
				out.Versions = append(out.Versions, v.version)
			}
		}
	}
	return out
}

func groupList(groups []group) *metav1.APIGroupList {
	out := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range groups {
		if g.name != "" {
			member := *apiGroup(g)
			member.TypeMeta = metav1.TypeMeta{}
			out.Groups = append(out.Groups, member)
		}
	}
	return out
}

func apiGroup(g group) *metav1.APIGroup {
	out := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: g.name}
	for _, v := range g.versions {
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + v.version, Version: v.version})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// resourceList is the document of one group version: resources and their subresources, by name.
func resourceList(v groupVersion) *metav1.APIResourceList {
	out := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: v.resources[0].GroupVersion().String(),
	}
	for _, r := range v.resources {
		out.APIResources = append(out.APIResources, metav1.APIResource{
			Name:               r.Resource,
			SingularName:       r.Singular,
			Namespaced:         r.Namespaced,
			Kind:               r.Kind,
			Verbs:              Verbs(r),
			ShortNames:         r.ShortNames,
			Categories:         r.Categories,
			StorageVersionHash: storageVersionHash(r),
		})
		for _, s := range r.Subresources {
			sub := metav1.APIResource{Name: r.Resource + "/" + s.Name, Namespaced: r.Namespaced, Kind: s.Kind.Kind, Verbs: s.Verbs}
			if s.Kind.GroupVersion() != r.GroupVersion() {
				sub.Group, sub.Version = s.Kind.Group, s.Kind.Version
			}
			out.APIResources = append(out.APIResources, sub)
		}
	}
	slices.SortFunc(out.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// aggregate makes the lists that /api (the core group) and /apis (all others) answer.
func aggregate(groups []group) (core, named *apidiscoveryv2.APIGroupDiscoveryList) {
	list := func() *apidiscoveryv2.APIGroupDiscoveryList {
		return &apidiscoveryv2.APIGroupDiscoveryList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
			Items:    []apidiscoveryv2.APIGroupDiscovery{},
		}
	}
	core, named = list(), list()
	for _, g := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			item.Versions = append(item.Versions, aggregateVersion(v))
		}
		if g.name == "" {
			core.Items = append(core.Items, item)
		} else {
			named.Items = append(named.Items, item)
		}
	}
	return core, named
}

func aggregateVersion(v groupVersion) apidiscoveryv2.APIVersionDiscovery {
	if v.other != nil {
		return *v.other
	}
	out := apidiscoveryv2.APIVersionDiscovery{Version: v.version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, r := range v.resources {
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		resource := apidiscoveryv2.APIResourceDiscovery{
			Resource:         r.Resource,
			ResponseKind:     responseKind(r, r.GroupVersionKind()),
			Scope:            scope,
			SingularResource: r.Singular,
			Verbs:            Verbs(r),
			ShortNames:       r.ShortNames,
			Categories:       r.Categories,
		}
		for _, s := range r.Subresources {
			resource.Subresources = append(resource.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: s.Name, ResponseKind: responseKind(r, s.Kind), Verbs: s.Verbs,
			})
		}
		out.Resources = append(out.Resources, resource)
	}
	return out
}

// responseKind names a kind that a row answers with. Left out, group and version are those of the document, as in the plain form;
// of custom resources they are not left out, as in Kubernetes.
func responseKind(r *registry.Resource, kind schema.GroupVersionKind) *metav1.GroupVersionKind {
	if r.Model == nil && kind.GroupVersion() == r.GroupVersion() {
		return &metav1.GroupVersionKind{Kind: kind.Kind}
	}
	return &metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}

var everyVerb = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// customVerbs are the same of custom resources, in the order that Kubernetes has there.
var customVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// Verbs are the verbs that clients may use on r.
func Verbs(r *registry.Resource) []string {
	switch {
	case r.Verbs != nil:
		return r.Verbs
	case r.Model != nil:
		return customVerbs
	}
	return everyVerb
}

// storageVersionHash lets a client see whether two resources are stored as the same kind. It is
// calculated as Kubernetes does: the first eight bytes of the SHA-256 of group/version/kind.
func storageVersionHash(r *registry.Resource) string {
	if r.Answers != nil {
		return "" // not stored
	}
	stored := r
	if r.Hub != nil {
		stored = r.Hub
	}
	sum := sha256.Sum256([]byte(stored.Group + "/" + stored.Version + "/" + stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
