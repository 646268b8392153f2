package authwebhook

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authorization/cel"
)

// maxKeptBytes bounds the questions whose answers are kept: who asks for long names would fill the memory.
const maxKeptBytes = 10000

// Access asks a webhook what somebody may do. It is safe for concurrent use.
type Access struct {
	name    string
	config  *apiserver.WebhookConfiguration
	client  *client
	matches *cel.CELMatcher
	kept    *cache[authorizationv1.SubjectAccessReviewStatus]
}

// NewAccess compiles the configuration, which has been validated. now is the clock; nil means time.Now.
func NewAccess(name string, config *apiserver.WebhookConfiguration, now func() time.Time) (*Access, error) {
	if now == nil {
		now = time.Now
	}
	matches, faults := validation.ValidateAndCompileMatchConditions(cel.NewDefaultCompiler(), config.MatchConditions)
	if err := faults.ToAggregate(); err != nil {
		return nil, err
	}
	if config.ConnectionInfo.KubeConfigFile == nil {
		return nil, field.Required(field.NewPath("webhook", "connectionInfo", "kubeConfigFile"), "")
	}
	client, err := newClient(*config.ConnectionInfo.KubeConfigFile, config.Timeout.Duration)
	if err != nil {
		return nil, err
	}
	return &Access{name: name, config: config, client: client, matches: matches, kept: newCache[authorizationv1.SubjectAccessReviewStatus](now)}, nil
}

// Review decides on one action: neither yes nor no is no opinion. When the webhook fails, or a match condition does, and its failure policy is
// Deny, the answer is no, with a reason that blames the webhook. err is set in both cases, to be logged.
func (a *Access) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (yes, no bool, reason string, err error) {
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	if a.matches != nil && len(a.matches.CompilationResults) > 0 {
		matches, err := a.matches.Eval(ctx, review)
		if err != nil {
			return a.failed(err)
		}
		if !matches {
			return false, false, "", nil
		}
	}
	status, err := a.ask(ctx, review)
	switch {
	case err != nil:
		return a.failed(err)
	case status.Allowed && status.Denied:
		return a.failed(fmt.Errorf("%w: the answer is both yes and no", ErrCall))
	}
	return status.Allowed, status.Denied, status.Reason, nil
}

func (a *Access) failed(err error) (yes, no bool, reason string, _ error) {
	err = fmt.Errorf("authorizer %q: %w", a.name, err)
	if a.config.FailurePolicy == apiserver.FailurePolicyDeny {
		return false, true, fmt.Sprintf("authorizer %q failed", a.name), err
	}
	return false, false, "", err
}

func (a *Access) ask(ctx context.Context, review *authorizationv1.SubjectAccessReview) (authorizationv1.SubjectAccessReviewStatus, error) {
	key, size := digest(review.Spec)
	if status, ok := a.kept.get(key); ok {
		return status, nil
	}
	kind := header{APIVersion: authorizationv1.GroupName + "/" + a.config.SubjectAccessReviewVersion, Kind: "SubjectAccessReview"}
	review.TypeMeta = metav1.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}
	var answer authorizationv1.SubjectAccessReview
	var err error
	if a.config.SubjectAccessReviewVersion == "v1beta1" {
		err = a.client.post(ctx, kind, oldReview(review), &answer)
	} else {
		err = a.client.post(ctx, kind, review, &answer)
	}
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	if size <= maxKeptBytes {
		a.kept.put(key, answer.Status, answer.Status.Allowed, a.life(answer.Status.Allowed))
	}
	return answer.Status, nil
}

func (a *Access) life(allowed bool) time.Duration {
	life, keep := a.config.UnauthorizedTTL, a.config.CacheUnauthorizedRequests
	if allowed {
		life, keep = a.config.AuthorizedTTL, a.config.CacheAuthorizedRequests
	}
	if !keep {
		return 0
	}
	return life.Duration
}

// oldReview is a review of v1beta1, where groups are called group.
func oldReview(review *authorizationv1.SubjectAccessReview) any {
	return map[string]any{
		"apiVersion": review.APIVersion, "kind": review.Kind,
		"spec": struct {
			authorizationv1.SubjectAccessReviewSpec
			Groups []string `json:"group,omitempty"`
		}{review.Spec, review.Spec.Groups},
	}
}
