package apiserver

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kontiki/apiserver/rbac"
)

// narrowing is what the selectors of a list, watch or deletecollection mean to authorizers.
type narrowing struct {
	name   string // of the one object that is asked for (metadata.name=x); empty if there may be several
	fields fields.Requirements
	labels labels.Requirements
}

// narrowingOf reads the selectors of a request. Those that cannot be read narrow nothing; the handler will complain about them.
func narrowingOf(r *http.Request, verb string) (n narrowing) {
	if !strings.Contains(r.URL.RawQuery, "Selector") {
		return n
	}
	switch verb {
	case "list", "watch", "deletecollection":
	default:
		return n
	}
	query := r.URL.Query()
	if text := query.Get("fieldSelector"); text != "" {
		n.fields, _ = readFields(text)
	}
	if text := query.Get("labelSelector"); text != "" {
		n.labels, _ = readLabels(text)
	}
	selected := rbac.Request{Fields: n.fields}
	for _, f := range n.fields {
		if f.Field == "metadata.name" && selected.SelectsField(f.Field, f.Value) && len(path.IsValidPathSegmentName(f.Value)) == 0 {
			n.name = f.Value
		}
	}
	return n
}

// action is the target's request as the authorizer sees it.
func (t *target) action() rbac.Request {
	name := t.name
	if name == "" {
		name = t.narrowing.name
	}
	namespace := t.namespace
	if t.resource.Group == "" && t.resource.Resource == "namespaces" {
		namespace = t.name // a namespace is in itself, as in Kubernetes: who may view what is in it may see it
	}
	return rbac.Request{
		Verb: t.verb, Group: t.resource.Group, Version: t.resource.Version, Resource: t.resource.Resource, Subresource: t.subName(),
		Namespace: namespace, Name: name, Fields: t.narrowing.fields, Labels: t.narrowing.labels,
	}
}
