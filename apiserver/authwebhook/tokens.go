package authwebhook

import (
	"cmp"
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenConfig of a webhook that knows tokens.
type TokenConfig struct {
	// Kubeconfig is the path of the file that says where the webhook is. Empty means that there is none.
	Kubeconfig string
	// Version of TokenReview that it speaks: v1 (the default) or v1beta1.
	Version string
	// CacheTTL is how long an answer is kept; 0 means 2 min, as in Kubernetes, less than 0 not at all.
	CacheTTL time.Duration
	// Timeout of a call; 0 means 10 s.
	Timeout time.Duration
	Now     func() time.Time // nil means time.Now
}

// Tokens asks a webhook whose tokens are shown. It is safe for concurrent use.
type Tokens struct {
	config TokenConfig
	client *client
	kept   *cache[authenticationv1.TokenReviewStatus]
}

// NewTokens reads the kubeconfig; nil if there is none.
func NewTokens(config TokenConfig) (*Tokens, error) {
	if config.Kubeconfig == "" {
		return nil, nil
	}
	config.Version = cmp.Or(config.Version, "v1")
	config.CacheTTL, config.Timeout = cmp.Or(config.CacheTTL, 2*time.Minute), cmp.Or(config.Timeout, 10*time.Second)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Version != "v1" && config.Version != "v1beta1" {
		return nil, fmt.Errorf("%w: TokenReview is v1 or v1beta1, not %q", ErrKubeconfig, config.Version)
	}
	client, err := newClient(config.Kubeconfig, config.Timeout)
	if err != nil {
		return nil, err
	}
	return &Tokens{config: config, client: client, kept: newCache[authenticationv1.TokenReviewStatus](config.Now)}, nil
}

// Review asks whose a token is, and for which of the audiences it is good. The error is ErrCall.
func (t *Tokens) Review(ctx context.Context, token string, audiences []string) (authenticationv1.TokenReviewStatus, error) {
	key, _ := digest(token, audiences)
	if status, ok := t.kept.get(key); ok {
		return status, nil
	}
	kind := header{APIVersion: authenticationv1.GroupName + "/" + t.config.Version, Kind: "TokenReview"}
	review := authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	}
	var answer authenticationv1.TokenReview
	if err := t.client.post(ctx, kind, &review, &answer); err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	if answer.Status.Authenticated && answer.Status.User.Username == "" {
		return authenticationv1.TokenReviewStatus{}, fmt.Errorf("%w: the token's user has no name", ErrCall)
	}
	t.kept.put(key, answer.Status, answer.Status.Authenticated, t.config.CacheTTL)
	return answer.Status, nil
}
