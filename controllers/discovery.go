package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
)

// resource is what discovery says about one resource.
type resource struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	verbs      sets.Set[string]
}

// deletableResources lists, in the server's preferred versions, the resources whose objects can be listed and deleted.
// Subresources are left out. With an error the list is what could be found.
func deletableResources(client discovery.DiscoveryInterface, namespacedOnly bool) ([]resource, error) {
	lists, err := client.ServerPreferredResources()
	var out []resource
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			return out, fmt.Errorf("controllers: discovery: %w", parseErr)
		}
		for _, r := range list.APIResources {
			found := resource{gvr: gv.WithResource(r.Name), kind: r.Kind, namespaced: r.Namespaced, verbs: sets.New(r.Verbs...)}
			if strings.Contains(r.Name, "/") || !found.verbs.HasAll("list", "delete") || namespacedOnly && !r.Namespaced {
				continue
			}
			out = append(out, found)
		}
	}
	return out, err
}
