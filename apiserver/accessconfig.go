package apiserver

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver"

	"kontiki/apiserver/authconfig"
	"kontiki/apiserver/authwebhook"
	"kontiki/apiserver/frontproxy"
	"kontiki/apiserver/oidc"
	"kontiki/apiserver/rbac"
	"kontiki/apiserver/tokens"
)

// AccessConfig says who is known and who decides, beyond what the objects of the cluster say. The zero value is safe: certificates and
// tokens of this cluster, the Node authorizer, then RBAC.
type AccessConfig struct {
	// FrontProxy is whose headers are believed; without a CA nobody's.
	FrontProxy frontproxy.Config
	// Rules are what the configuration files say.
	authconfig.Rules
	// Files are looked at every FollowEvery (0: 10 s), and what has changed in them replaces the Rules. A faulty file changes nothing.
	Files       authconfig.Files
	FollowEvery time.Duration
	// TokenWebhook is asked about tokens that nobody here knows.
	TokenWebhook authwebhook.TokenConfig
}

// access is what AccessConfig makes of a Server.
type access struct {
	frontProxy *frontproxy.Proxy
	webhook    *authwebhook.Tokens // nil if there is none
	judges     atomic.Pointer[judges]
}

// judges are what Rules make of a Server.
type judges struct {
	issuers        *oidc.Authenticator
	anonymousPaths []string
	authorizers    []decider // in the order in which they are asked
}

func (s *Server) openAccess(config AccessConfig) (err error) {
	config.FrontProxy.ClientCA = s.config.ClientCA
	if s.frontProxy, err = frontproxy.New(config.FrontProxy); err != nil {
		return err
	}
	if s.webhook, err = authwebhook.NewTokens(config.TokenWebhook); err != nil {
		return err
	}
	return s.judgeBy(config.Rules)
}

// judgeBy has requests judged by other rules from now on; an error changes nothing.
func (s *Server) judgeBy(rules authconfig.Rules) (err error) {
	j := &judges{anonymousPaths: rules.AnonymousPaths}
	if j.issuers, err = oidc.New(rules.Issuers, oidc.Options{OwnIssuer: s.tokens.URL(), Log: s.log}); err != nil {
		return err
	}
	for _, c := range rules.Authorizers {
		a, err := s.openAuthorizer(c)
		if err != nil {
			return err
		}
		j.authorizers = append(j.authorizers, a)
	}
	if rules.Authorizers == nil {
		j.authorizers = []decider{byNode{s}, byRole{s}}
	}
	s.judges.Store(j)
	return nil
}

func (s *Server) openAuthorizer(config apiserverconfig.AuthorizerConfiguration) (decider, error) {
	switch config.Type {
	case authconfig.TypeNode:
		return byNode{s}, nil
	case authconfig.TypeRBAC:
		return byRole{s}, nil
	case authconfig.TypeWebhook:
		webhook, err := authwebhook.NewAccess(config.Name, config.Webhook, nil)
		return byWebhook{s, webhook}, err
	}
	return nil, fmt.Errorf("apiserver: there is no authorizer of type %q", config.Type)
}

// byWebhook lets another server judge.
type byWebhook struct {
	s       *Server
	webhook *authwebhook.Access
}

func (a byWebhook) decide(ctx context.Context, user User, action rbac.Request) (decision, string) {
	yes, no, reason, err := a.webhook.Review(ctx, reviewOf(user, action))
	if err != nil {
		a.s.log.WarnContext(ctx, "an authorization webhook failed", "err", err)
	}
	switch {
	case yes:
		return allowed, reason
	case no:
		return denied, reason
	}
	return noOpinion, reason
}

// webhookToken asks the webhook, which must know the token for this API server if it is not asked about other audiences.
func (s *Server) webhookToken(ctx context.Context, token string, audiences []string) (user User, good []string, known bool, err error) {
	if s.webhook == nil {
		return user, nil, false, nil
	}
	asked := audiences
	if len(asked) == 0 {
		asked = []string{s.tokens.URL()}
	}
	status, err := s.webhook.Review(ctx, token, asked)
	if err != nil {
		s.log.WarnContext(ctx, "the token webhook failed", "err", err)
		return user, nil, true, fmt.Errorf("%w: %w", tokens.ErrInvalid, err)
	}
	if !status.Authenticated {
		return user, nil, true, fmt.Errorf("%w: the webhook does not know it", tokens.ErrInvalid)
	}
	claims := tokens.Claims{}
	if claims.Audience = status.Audiences; len(claims.Audience) == 0 { // a webhook that knows of no audiences means this server
		claims.Audience = []string{s.tokens.URL()}
	}
	good, err = claims.GoodFor(asked, "")
	return userOf(status.User), good, true, err
}
