package registry

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// authenticationRows are questions about who somebody is.
func authenticationRows() []*Resource { return []*Resource{selfSubjectReviews(), tokenReviews()} }

// questions makes a row that is POSTed to and answered at once.
func questions(r *Resource, namespaced bool, create func(context.Context, Server, runtime.Object) (runtime.Object, error)) *Resource {
	r.Namespaced, r.Verbs = namespaced, []string{"create"}
	r.Prefix = "" // nothing is stored
	r.Strategy.NoGeneration = true
	r.Answers = &Answers{Create: create}
	return r
}

// question lets the answer to a question be written for its Go type.
func question[T runtime.Object](f func(context.Context, Server, T)) func(context.Context, Server, runtime.Object) (runtime.Object, error) {
	return func(ctx context.Context, server Server, obj runtime.Object) (runtime.Object, error) {
		f(ctx, server, obj.(T))
		return obj, nil
	}
}

// selfSubjectReviews: kubectl auth whoami.
func selfSubjectReviews() *Resource {
	r := newUnlisted[authenticationv1.SelfSubjectReview](authenticationv1.SchemeGroupVersion, "selfsubjectreviews", "SelfSubjectReview")
	return questions(r, false, func(ctx context.Context, _ Server, _ runtime.Object) (runtime.Object, error) {
		return &authenticationv1.SelfSubjectReview{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now()}, Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: AskerOf(ctx)},
		}, nil
	})
}

// tokenReviews: a webhook or a proxy asks whose token it has been shown.
func tokenReviews() *Resource {
	r := newUnlisted[authenticationv1.TokenReview](authenticationv1.SchemeGroupVersion, "tokenreviews", "TokenReview")
	return questions(r, false, func(ctx context.Context, server Server, obj runtime.Object) (runtime.Object, error) {
		review := obj.(*authenticationv1.TokenReview)
		if review.Spec.Token == "" {
			return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
		}
		review.Status = authenticationv1.TokenReviewStatus{}
		user, audiences, err := server.Authenticate(ctx, review.Spec.Token, review.Spec.Audiences)
		if err != nil {
			review.Status.Error = err.Error()
		} else {
			review.Status.Authenticated, review.Status.User, review.Status.Audiences = true, *user, audiences
		}
		return review, nil
	})
}
