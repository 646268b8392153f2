package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/discovery"
	"kontiki/apiserver/registry"
)

// endpoint is one path with what can be done there, in the terms of neither OpenAPI version.
type endpoint struct {
	path       string
	parameters []parameter // of every operation
	operations []operation
}

type operation struct {
	method, action string
	id             string
	summary        string
	kind           schema.GroupVersionKind
	parameters     []parameter
	body, answer   model // nil: none, or a stream
	consumes       []string
	success        int
}

type parameter struct {
	name, in, kind, description string
}

var (
	deleteOptions = typeOf[metav1.DeleteOptions]()
	statusType    = typeOf[metav1.Status]()
	patchType     = typeOf[metav1.Patch]()
	watchEvent    = typeOf[metav1.WatchEvent]()
	resourceList  = typeOf[metav1.APIResourceList]()
)

var (
	namespaceParam = parameter{"namespace", "path", "string", "object name and auth scope, such as for teams and projects"}
	nameParam      = parameter{"name", "path", "string", "name of the object"}
	prettyParam    = parameter{"pretty", "query", "string", "If 'true', then the output is pretty printed."}

	dryRun          = parameter{"dryRun", "query", "string", "All: do everything but persist the change."}
	fieldManager    = parameter{"fieldManager", "query", "string", "Who is making the change, for server-side apply."}
	fieldValidation = parameter{"fieldValidation", "query", "string", "Unknown and duplicate fields: Ignore, Warn (the default) or Strict."}
	force           = parameter{"force", "query", "boolean", "Take fields from other managers (apply patches only)."}

	selectParams = []parameter{
		{"labelSelector", "query", "string", "Only objects whose labels match."},
		{"fieldSelector", "query", "string", "Only objects whose fields match."},
		{"limit", "query", "integer", "At most so many objects; the rest by continue."},
		{"continue", "query", "string", "Where the last page ended."},
		{"resourceVersion", "query", "string", "How fresh the answer has to be; see resourceVersionMatch."},
		{"resourceVersionMatch", "query", "string", "Exact or NotOlderThan: how resourceVersion is meant."},
		{"timeoutSeconds", "query", "integer", "How long the call may last."},
		{"sendInitialEvents", "query", "boolean", "Begin a watch with the objects that exist, and a bookmark after them."},
	}
	watchParams = []parameter{
		{"watch", "query", "boolean", "Stream changes instead of returning a list."},
		{"allowWatchBookmarks", "query", "boolean", "Send bookmarks, which carry only a resourceVersion."},
	}
	writeParams  = []parameter{dryRun, fieldManager, fieldValidation}
	patchParams  = []parameter{dryRun, fieldManager, fieldValidation, force}
	deleteParams = []parameter{
		dryRun,
		{"gracePeriodSeconds", "query", "integer", "Seconds until the object is gone; 0 is at once."},
		{"propagationPolicy", "query", "string", "What becomes of dependents: Orphan, Background or Foreground."},
		{"orphanDependents", "query", "boolean", "Deprecated: use propagationPolicy."},
	}
)

var (
	anyType    = []string{"*/*"}
	patchTypes = []string{
		"application/json-patch+json", "application/merge-patch+json",
		"application/strategic-merge-patch+json", "application/apply-patch+yaml",
	}
)

// patchTypes are the forms of patches that a resource takes. kubectl apply sends a strategic merge patch to whatever says that it
// takes one; custom resources do not.
func (n names) patchTypes() []string {
	if n.Model == nil {
		return patchTypes
	}
	return slices.DeleteFunc(slices.Clone(patchTypes), func(t string) bool { return t == "application/strategic-merge-patch+json" })
}

// rootOf is where the paths of a group version begin.
func rootOf(gv schema.GroupVersion) string { return "/" + pathOf(gv) }

// discoveryOf is the list of a group version's resources.
func discoveryOf(gv schema.GroupVersion) endpoint {
	return endpoint{path: rootOf(gv) + "/", operations: []operation{{
		method: "GET", id: "get" + groupName(gv.Group) + title(gv.Version) + "APIResources", summary: "get available resources",
		answer: resourceList, success: 200,
	}}}
}

// endpointsOf lists the paths of a row.
func endpointsOf(r *registry.Resource) []endpoint {
	root := rootOf(r.GroupVersion())
	collection, scope := root+"/"+r.Resource, []parameter{prettyParam}
	if r.Namespaced {
		collection, scope = root+"/namespaces/{namespace}/"+r.Resource, []parameter{namespaceParam, prettyParam}
	}
	one := append([]parameter{nameParam}, scope...)
	n := names{r}
	out := []endpoint{
		{collection, scope, n.collection()},
		{collection + "/{name}", one, n.object()},
	}
	if r.Namespaced && n.can("list") {
		list := n.list("ForAllNamespaces")
		out = append(out, endpoint{root + "/" + r.Resource, []parameter{prettyParam}, []operation{list}})
	}
	for i := range r.Subresources {
		s := &r.Subresources[i]
		path := collection + "/{name}/" + s.Name
		out = append(out, endpoint{path, one, n.subresource(s)})
		if s.Name == "proxy" {
			rest := append([]parameter{{"path", "path", "string", "path to the resource"}}, one...)
			out = append(out, endpoint{path + "/{path}", rest, n.subresource(s)})
		}
	}
	return slices.DeleteFunc(out, func(e endpoint) bool { return len(e.operations) == 0 })
}

// names builds the operations of a row, and their ids ("listCoreV1NamespacedPod").
type names struct{ *registry.Resource }

func (n names) id(verb, suffix string) string {
	scope := ""
	if n.Namespaced && suffix != "ForAllNamespaces" {
		scope = "Namespaced"
	}
	return verb + groupName(n.Group) + title(n.Version) + scope + n.Kind + suffix
}

// groupName is a group in an id: "Core", "Apps", "RbacAuthorization".
func groupName(group string) string {
	if group == "" {
		return "Core"
	}
	name := ""
	for part := range strings.SplitSeq(strings.TrimSuffix(group, ".k8s.io"), ".") {
		name += title(part)
	}
	return name
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (n names) can(verb string) bool { return slices.Contains(discovery.Verbs(n.Resource), verb) }

func (n names) object() []operation {
	body, gvk := modelOf(n.Resource), n.GroupVersionKind()
	all := []operation{
		{
			method: "GET", action: "get", id: n.id("read", ""), summary: "read the specified " + n.Kind,
			kind: gvk, answer: body, success: 200,
		},
		{
			method: "PUT", action: "put", id: n.id("replace", ""), summary: "replace the specified " + n.Kind,
			kind: gvk, body: body, answer: body, success: 200, parameters: writeParams, consumes: anyType,
		},
		{
			method: "PATCH", action: "patch", id: n.id("patch", ""), summary: "partially update the specified " + n.Kind,
			kind: gvk, body: patchType, answer: body, success: 200, parameters: patchParams, consumes: n.patchTypes(),
		},
		{
			method: "DELETE", action: "delete", id: n.id("delete", ""), summary: "delete a " + n.Kind,
			kind: gvk, body: deleteOptions, answer: statusType, success: 200, parameters: deleteParams, consumes: anyType,
		},
	}
	verb := map[string]string{"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
	return slices.DeleteFunc(all, func(o operation) bool { return !n.can(verb[o.method]) })
}

func (n names) collection() []operation {
	body, gvk := modelOf(n.Resource), n.GroupVersionKind()
	var out []operation
	if n.can("list") {
		out = append(out, n.list(""))
	}
	if n.can("create") {
		out = append(out, operation{
			method: "POST", action: "post", id: n.id("create", ""), summary: "create a " + n.Kind,
			kind: gvk, body: body, answer: body, success: 201, parameters: writeParams, consumes: anyType,
		})
	}
	if n.can("deletecollection") {
		out = append(out, operation{
			method: "DELETE", action: "deletecollection", id: n.id("deleteCollection", ""),
			summary: "delete collection of " + n.Kind, kind: gvk, body: deleteOptions, answer: statusType, success: 200,
			parameters: slices.Concat(deleteParams, selectParams), consumes: anyType,
		})
	}
	return out
}

func (n names) list(suffix string) operation {
	return operation{
		method: "GET", action: "list", id: n.id("list", suffix), summary: "list or watch objects of kind " + n.Kind,
		kind: n.GroupVersionKind(), answer: listModelOf(n.Resource), success: 200,
		parameters: slices.Concat(selectParams, watchParams),
	}
}

// subresource: one operation per verb; a stream ("connect") answers with whatever the node sends.
func (n names) subresource(s *registry.Subresource) []operation {
	methods := map[string]string{"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
	actions := map[string]string{"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
	prefix := map[string]string{"get": "read", "create": "create", "update": "replace", "patch": "patch", "delete": "delete"}
	var out []operation
	for _, verb := range s.Verbs {
		o := operation{
			method: methods[verb], action: actions[verb], id: n.id(prefix[verb], title(s.Name)),
			summary: prefix[verb] + " " + s.Name + " of the specified " + n.Kind, kind: s.Kind, success: 200,
		}
		switch {
		case s.Connect:
			o.action, o.id = "connect", n.id("connect"+title(strings.ToLower(o.method)), title(s.Name))
		case s.New != nil:
			o.answer = n.bodyOf(s)
		}
		if o.answer != nil && verb != "get" {
			o.body, o.consumes, o.parameters = o.answer, anyType, writeParams
		}
		switch verb {
		case "create":
			o.success = 201
		case "patch":
			if o.answer != nil {
				o.body, o.consumes, o.parameters = patchType, n.patchTypes(), patchParams
			}
		}
		out = append(out, o)
	}
	return out
}

// bodyOf is what travels to and from a subresource: the object itself, or a kind of its own.
func (n names) bodyOf(s *registry.Subresource) model {
	if s.Kind == n.GroupVersionKind() {
		return modelOf(n.Resource)
	}
	return goType{reflect.TypeOf(s.New()).Elem()}
}
