package apiserver

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"
)

// matchResource tells the URLs of resources from others and takes them apart. Nearly every request is for one, and has one of
// eighteen shapes: as that many patterns they took the router longer than anything else before the handler.
//
//	/api/VERSION/…                                       the core group
//	/apis/GROUP/VERSION/…                                the others; below either
//	RESOURCE [/NAME [/SUBRESOURCE [/SUBPATH…]]]          of the cluster, or lists of all namespaces
//	namespaces/NAMESPACE/RESOURCE [/NAME [/SUBRESOURCE [/SUBPATH…]]]
//	namespaces/NAME/status, finalize, history            not a resource called status in a namespace
//	watch/…                                              any of these, to watch: how it was done before ?watch=true
//
// Slashes at the end say nothing, as in kube-apiserver: its router and its RequestInfoFactory both take them off. Only a
// subpath keeps them, since what is proxied may tell a/ from a. A namespace that is empty means all of them: so clients
// write it that build URLs of pieces. Any other piece that is empty makes the path unknown.
func matchResource(r *http.Request, match *mux.RouteMatch) bool {
	vars, ok := resourcePath(r.URL.Path)
	if ok {
		match.Vars = vars
	}
	return ok
}

// ownSubresources are what a namespace has below it that is no resource.
var ownSubresources = []string{"status", "finalize", "history"}

func resourcePath(path string) (vars map[string]string, ok bool) {
	group, rest := "", ""
	if rest, ok = strings.CutPrefix(path, "/api/"); !ok {
		if rest, ok = strings.CutPrefix(path, "/apis/"); !ok {
			return nil, false
		}
		if group, rest, ok = strings.Cut(rest, "/"); !ok || group == "" {
			return nil, false
		}
	}
	version, rest, ok := strings.Cut(rest, "/")
	if !ok || version == "" {
		return nil, false
	}
	vars = map[string]string{"version": version}
	if group != "" {
		vars["group"] = group
	}
	if below, found := strings.CutPrefix(rest, "watch/"); found && strings.Trim(below, "/") != "" {
		vars["watch"], rest = "true", below
	}
	if below, inNamespace := strings.CutPrefix(rest, "namespaces/"); inNamespace {
		namespace, inside, _ := strings.Cut(below, "/")
		if what := strings.TrimRight(inside, "/"); what != "" && !slices.Contains(ownSubresources, what) {
			vars["namespace"], rest = namespace, inside
		}
	}
	return vars, objectPath(vars, rest)
}

// objectPath takes apart what is below the version or the namespace.
func objectPath(vars map[string]string, rest string) bool {
	for _, name := range []string{"resource", "name", "subresource"} {
		piece, below, _ := strings.Cut(rest, "/")
		if piece == "" {
			return false
		}
		vars[name] = piece
		if strings.TrimRight(below, "/") == "" {
			return true
		}
		rest = below
	}
	vars["subpath"] = rest
	return true
}
