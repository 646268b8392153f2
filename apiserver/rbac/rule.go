package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Request is what somebody wants to do: to a resource, or to a path that is none.
type Request struct {
	Verb string // get, list, watch, create, update, patch, delete, deletecollection, or a method in lower case for a path

	Group, Version        string // no rule asks for the version; other authorizers may
	Resource, Subresource string
	Namespace             string // empty for cluster-scoped resources and across namespaces
	Name                  string // empty for collections

	// Fields and Labels narrow a list, watch or deletecollection. No rule asks for them: they are for the node
	// authorizer and for webhooks (KEP-4601). Nil also stands for selectors that cannot be read: they allow nothing more.
	Fields fields.Requirements
	Labels labels.Requirements

	Path string // set for a path that is no resource; then the fields above but for Verb are empty
}

// SelectsField says whether only objects whose field has the value are asked for.
func (r *Request) SelectsField(field, value string) bool {
	return slices.ContainsFunc(r.Fields, func(q fields.Requirement) bool {
		return q.Field == field && q.Value == value && (q.Operator == selection.Equals || q.Operator == selection.DoubleEquals)
	})
}

// allows says whether the rule allows the request, wherever the rule comes from.
func allows(rule *rbacv1.PolicyRule, r *Request) bool {
	if !hasOrAll(rule.Verbs, r.Verb) {
		return false
	}
	if r.Path != "" {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return matchesPath(pattern, r.Path) })
	}
	return hasOrAll(rule.APIGroups, r.Group) && matchesResource(rule.Resources, r) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
}

func hasOrAll(list []string, s string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, s)
}

// matchesResource: "pods" is not its subresources, which are named "pods/log" or, of every resource, "*/log".
func matchesResource(list []string, r *Request) bool {
	for _, pattern := range list {
		switch {
		case pattern == "*":
			return true
		case r.Subresource == "":
			if pattern == r.Resource {
				return true
			}
		default:
			resource, sub, _ := strings.Cut(pattern, "/")
			if sub == r.Subresource && (resource == "*" || resource == r.Resource) {
				return true
			}
		}
	}
	return false
}

// matchesPath: a star at the end, and only there, stands for any rest.
func matchesPath(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}
