package aggregation

import (
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discovery is what clients are told of a remote. One that is not well is stale: what it was last seen to have may be wrong.
func (r *remote) discovery() apidiscoveryv2.APIVersionDiscovery {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := apidiscoveryv2.APIVersionDiscovery{
		Version: r.gv.Version, Resources: r.resources, Freshness: apidiscoveryv2.DiscoveryFreshnessStale,
	}
	if r.found.isTrue() {
		out.Freshness = apidiscoveryv2.DiscoveryFreshnessCurrent
	}
	return out
}

// resourcesOf turns the document of a group version, in which subresources stand beside resources as "pods/log", into the form
// of aggregated discovery. Subresources of nothing are left out.
func resourcesOf(list *metav1.APIResourceList) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	index := map[string]int{}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		index[r.Name] = len(out)
		out = append(out, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kindOf(r), Scope: scopeOf(r), SingularResource: r.SingularName,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	for _, r := range list.APIResources {
		parent, name, sub := strings.Cut(r.Name, "/")
		i, known := index[parent]
		if sub && known {
			out[i].Subresources = append(out[i].Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: name, ResponseKind: kindOf(r), Verbs: r.Verbs,
			})
		}
	}
	return out
}

// kindOf is never nil: older clients crash where it is missing (kubernetes/kubernetes#118361).
func kindOf(r metav1.APIResource) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func scopeOf(r metav1.APIResource) apidiscoveryv2.ResourceScope {
	if r.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}
