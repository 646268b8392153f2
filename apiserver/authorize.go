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

// A decision of an authorizer. The first one that has an opinion decides; without any the answer is no.
type decision int

const (
	noOpinion decision = iota
	allowed
	denied // whatever the authorizers behind it would say
)

// A decider is an authorizer: it decides on actions of users. Its reason may be empty.
type decider interface {
	decide(ctx context.Context, user User, action rbac.Request) (decision, string)
}

// byNode judges nodes by what is on them.
type byNode struct{ s *Server }

func (a byNode) decide(ctx context.Context, user User, action rbac.Request) (decision, string) {
	node, ok := nodeauth.NodeOf(user.rbac())
	if !ok {
		return noOpinion, ""
	}
	reason, ok := nodeauth.Allow(ctx, node, action, a.s.policy.Load(), nodeNeeds(a))
	if ok {
		return allowed, reason
	}
	return noOpinion, reason
}

// byRole judges by the roles and bindings of the cluster.
type byRole struct{ s *Server }

func (a byRole) decide(_ context.Context, user User, action rbac.Request) (decision, string) {
	reason, ok := a.s.policy.Load().Allow(user.rbac(), action)
	if ok {
		return allowed, reason
	}
	return noOpinion, reason
}

// mayAll says who is asked no further questions: no role and no webhook can take anything from system:masters, so that nobody can
// lock themselves out for good.
func mayAll(user User) bool { return user.in(groupMasters) }

// authorize says whether a user may do something; reason may be empty.
func (s *Server) authorize(ctx context.Context, user User, action rbac.Request) (reason string, ok bool) {
	decision, reason := s.decide(ctx, user, action)
	return reason, decision == allowed
}

// decide asks the authorizers in their order. Without an opinion, the reason has all of theirs.
func (s *Server) decide(ctx context.Context, user User, action rbac.Request) (decision, string) {
	if mayAll(user) {
		return allowed, ""
	}
	if looking := action.Verb == "get" || action.Verb == "head"; looking && slices.Contains(publicPaths, healthRoot(action.Path)) {
		return allowed, ""
	}
	var reasons []string
	for _, a := range s.judges.Load().authorizers {
		decision, reason := a.decide(ctx, user, action)
		if decision != noOpinion {
			return decision, reason
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return noOpinion, strings.Join(reasons, "\n")
}

func (u User) rbac() rbac.User { return rbac.User{Name: u.Name, Groups: u.Groups} }

// authorizeTarget decides on a request for a resource.
func (s *Server) authorizeTarget(ctx context.Context, t *target) error {
	user := factsOf(ctx).user
	action := t.action()
	reason, ok := s.authorize(ctx, user, action)
	auditDecision(ctx, ok, reason)
	if ok {
		return nil
	}
	return refuse(user, action, reason)
}

// refuse says who may not do what.
func refuse(user User, a rbac.Request, reason string) error {
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
