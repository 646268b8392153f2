package apiserver

import (
	"context"
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// publicPaths are open to anybody who reaches the port.
var publicPaths = []string{"/livez", "/readyz", "/healthz", "/version"}

// componentUsers are the identities of Kontiki's own components; they may do everything.
var componentUsers = []string{
	"system:apiserver",
	"system:kube-controller-manager",
	"system:kube-scheduler",
	"kube-apiserver-kubelet-client",
}

// allowed is the whole of authorization for now: masters, the components and nodes may do
// everything, others nothing but look at the public paths.
//
// Not yet: RBAC and the node authorizer (a node may today touch more than its own pods).
func allowed(user User, path string) bool {
	return slices.Contains(publicPaths, path) || user.in(groupMasters) || user.in(groupNodes) || slices.Contains(componentUsers, user.Name)
}

// selfReviews are the questions about oneself that every user may ask (system:basic-user of Kubernetes).
var selfReviews = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
}

func (t *target) asksAboutSelf() bool { return slices.Contains(selfReviews, t.groupResource()) }

// authorizeTarget decides on a request for a resource.
func authorizeTarget(ctx context.Context, t *target) error {
	user := factsOf(ctx).user
	if allowed(user, "") || t.asksAboutSelf() && user.Name != userAnonymous {
		return nil
	}
	if user.Name == userAnonymous {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	resource := t.resource.Resource
	if t.sub != nil {
		resource += "/" + t.sub.Name
	}
	scope := " at the cluster scope"
	if t.namespace != "" {
		scope = " in the namespace \"" + t.namespace + "\""
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: t.resource.Group, Resource: resource}, t.name, errors.New(
		"User \""+user.Name+"\" cannot "+t.verb+" resource \""+resource+"\" in API group \""+t.resource.Group+"\""+scope))
}

// authorizePath decides on requests for paths that are no resource.
func authorizePath(next http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if err := pathAccess(factsOf(r.Context()).user, r); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func pathAccess(user User, r *http.Request) error {
	switch {
	case allowed(user, healthRoot(r.URL.Path)):
		return nil
	case user.Name == userAnonymous:
		return apierrors.NewUnauthorized("Unauthorized")
	}
	return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("User \""+user.Name+"\" cannot "+pathVerb(r.Method)+" path \""+r.URL.Path+"\""))
}

func pathVerb(method string) string {
	switch method {
	case http.MethodPost:
		return "post"
	case http.MethodPut:
		return "put"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return "get"
}
