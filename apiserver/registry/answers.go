package registry

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Answers make a row whose objects are not stored: questions (reviews), commands (bindings) and views of the
// server itself (componentstatuses). Its Verbs are a part of create, get and list.
type Answers struct {
	// Create answers a POST of obj, which has its defaults and has been validated.
	Create func(ctx context.Context, server Server, obj runtime.Object) (runtime.Object, error)
	// List makes all objects there are, by name; a GET looks for its name among them.
	List func(ctx context.Context, server Server) []runtime.Object
}

// Server is what Answers can ask of the API server. Its errors are API status errors.
type Server interface {
	// Authenticate finds out whose token it is, and for which of the audiences it is good (the server's own if there are
	// none). The error says why it is nobody's.
	Authenticate(ctx context.Context, token string, audiences []string) (*authenticationv1.UserInfo, []string, error)
	// Authorize decides on one action.
	Authorize(ctx context.Context, action authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus
	// Rules lists what a user may do in a namespace.
	Rules(ctx context.Context, user authenticationv1.UserInfo, namespace string) authorizationv1.SubjectRulesReviewStatus
	// Command sends body to a subresource of an object, as a POST of the same user.
	Command(ctx context.Context, resource schema.GroupVersionResource, namespace, name, subresource string, body runtime.Object) error
	// IssueToken puts a token of the account that is good for a time into the request's status. The object that it is to be
	// bound to must exist.
	IssueToken(ctx context.Context, account *corev1.ServiceAccount, request *authenticationv1.TokenRequest, life time.Duration) error
	// StoreHealth is nil if the store answers.
	StoreHealth(ctx context.Context) error
}

type askerKey struct{}

// WithAsker returns a context that says who makes the request, for strategies that write it down.
func WithAsker(ctx context.Context, user authenticationv1.UserInfo) context.Context {
	return context.WithValue(ctx, askerKey{}, user)
}

// AskerOf returns who makes the request; the zero value is nobody.
func AskerOf(ctx context.Context) authenticationv1.UserInfo {
	user, _ := ctx.Value(askerKey{}).(authenticationv1.UserInfo)
	return user
}
