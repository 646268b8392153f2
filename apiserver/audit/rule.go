package audit

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is what a policy sees of a request.
type Request struct {
	User authenticationv1.UserInfo // zero if nobody knows who it is
	Verb string                    // of the API, or the HTTP method in lower case
	Path string

	// Resource is empty if the request is for none; then so is what follows.
	Resource, Subresource    string
	Group, Version           string
	Namespace, Name, Subpath string
}

// rule is one of a policy's.
type rule struct {
	auditv1.PolicyRule
	decision Decision
}

// matches says whether every condition that the rule has holds; conditions on resources never hold for other URLs, nor
// the other way round.
func (r *rule) matches(q *Request) bool {
	if !oneOf(r.Users, q.User.Username) || !oneOf(r.Verbs, q.Verb) || !r.matchesGroups(q.User.Groups) {
		return false
	}
	switch {
	case len(r.Namespaces) > 0 || len(r.Resources) > 0:
		return q.Resource != "" && oneOf(r.Namespaces, q.Namespace) && r.matchesResource(q)
	case len(r.NonResourceURLs) > 0:
		return q.Resource == "" && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return matchesURL(url, q.Path) })
	}
	return true
}

// oneOf says whether value is in list, in which an empty list has everything.
func oneOf(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }

func (r *rule) matchesGroups(groups []string) bool {
	return len(r.UserGroups) == 0 || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(r.UserGroups, g) })
}

func matchesURL(pattern, path string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, start)
	}
	return pattern == path
}

func (r *rule) matchesResource(q *Request) bool {
	if len(r.Resources) == 0 {
		return true
	}
	for _, g := range r.Resources {
		if g.Group != q.Group && g.Group != "*" {
			continue
		}
		if len(g.Resources) == 0 {
			return true
		}
		if oneOf(g.ResourceNames, q.Name) && slices.ContainsFunc(g.Resources, func(pattern string) bool { return matchesResource(pattern, q) }) {
			return true
		}
	}
	return false
}

// matchesResource knows pods, pods/log, pods/* (with pods itself, as in Kubernetes), */scale and *.
func matchesResource(pattern string, q *Request) bool {
	if pattern == "*" {
		return true
	}
	resource, subresource, below := strings.Cut(pattern, "/")
	switch {
	case !below:
		return resource == q.Resource && q.Subresource == ""
	case subresource == "*":
		return resource == q.Resource
	case resource == "*":
		return q.Subresource == subresource
	}
	return resource == q.Resource && subresource == q.Subresource
}
