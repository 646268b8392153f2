package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/nodeauth"
	"kontiki/apiserver/rbac"
)

// publicPaths are open to anybody who reaches the port, and all that is open to anybody without a name.
var publicPaths = []string{"/livez", "/readyz", "/healthz", "/version", discoveryPath, keysPath}

// serverUsers are the API server itself, and may do everything, as masters may.
var serverUsers = []string{"system:apiserver", "kube-apiserver-kubelet-client"}

// mayAll says who is asked no further questions: roles could not take anything from them, so that nobody can lock
// themselves out for good.
func mayAll(user User) bool {
	return user.in(groupMasters) || slices.Contains(serverUsers, user.Name)
}

// authorize decides on one action of a user by the roles and bindings of the cluster; reason may be empty.
// A node is judged by what is on it, and may have roles beside.
func (s *Server) authorize(ctx context.Context, user User, action rbac.Request) (reason string, ok bool) {
	if mayAll(user) {
		return "", true
	}
	if looking := action.Verb == "get" || action.Verb == "head"; looking && slices.Contains(publicPaths, healthRoot(action.Path)) {
		return "", true
	}
	if user.Name == userAnonymous {
		return "", false
	}
	policy := s.policy.Load()
	reason, ok = policy.Allow(user.rbac(), action)
	if node, isNode := nodeauth.NodeOf(user.rbac()); isNode && !ok {
		return nodeauth.Allow(ctx, node, action, policy, podsOnNodes{s})
	}
	return reason, ok
}

func (u User) rbac() rbac.User { return rbac.User{Name: u.Name, Groups: u.Groups} }

// action is the target's request as the authorizer sees it.
func (t *target) action() rbac.Request {
	return rbac.Request{
		Verb: t.verb, Group: t.resource.Group, Resource: t.resource.Resource, Subresource: t.subName(), Namespace: t.namespace, Name: t.name,
	}
}

// authorizeTarget decides on a request for a resource.
func (s *Server) authorizeTarget(ctx context.Context, t *target) error {
	user := factsOf(ctx).user
	reason, ok := s.authorize(ctx, user, t.action())
	auditDecision(ctx, ok, reason)
	if ok {
		return nil
	}
	return refuse(user, t.action(), reason)
}

// refuse says who may not do what. Whom the server does not know is told nothing but that.
func refuse(user User, a rbac.Request, reason string) error {
	if user.Name == userAnonymous {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	if reason != "" {
		reason = ": " + reason
	}
	if a.Path != "" {
		return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("User %q cannot %s path %q%s", user.Name, a.Verb, a.Path, reason))
	}
	resource, scope := a.Resource, "at the cluster scope"
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, fmt.Errorf(
		"User %q cannot %s resource %q in API group %q %s%s", user.Name, a.Verb, resource, a.Group, scope, reason))
}

// authorizePath decides on requests for paths that are no resource.
func (s *Server) authorizePath(next http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.pathAccess(r); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func (s *Server) pathAccess(r *http.Request) error {
	user, action := factsOf(r.Context()).user, rbac.Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	reason, ok := s.authorize(r.Context(), user, action)
	auditDecision(r.Context(), ok, reason)
	if ok {
		return nil
	}
	return refuse(user, action, reason)
}

// review answers a SubjectAccessReview.
func (s *Server) review(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	var action rbac.Request
	if a := spec.ResourceAttributes; a != nil {
		action = rbac.Request{Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name}
	} else if a := spec.NonResourceAttributes; a != nil {
		action = rbac.Request{Verb: a.Verb, Path: a.Path}
	}
	reason, ok := s.authorize(ctx, User{Name: spec.User, Groups: spec.Groups}, action)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: ok, Reason: reason}
}

// rulesOf lists what a user may do in a namespace.
func (s *Server) rulesOf(user User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	rules := s.policy.Load().RulesFor(user.rbac(), namespace)
	if mayAll(user) {
		rules = rbac.Everything()
	}
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{},
		NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	for _, r := range rules {
		if len(r.Resources) > 0 {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return status
}
