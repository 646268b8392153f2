package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kontiki/apiserver"
	"kontiki/apiserver/authconfig"
	"kontiki/apiserver/authwebhook"
	"kontiki/apiserver/frontproxy"
)

// accessOptions is who is known besides the cluster's own users, and who decides besides its roles: kube-apiserver's flags.
type accessOptions struct {
	files        authconfig.Files
	proxyCA      string // file
	proxy        frontproxy.Config
	tokenWebhook authwebhook.TokenConfig

	config apiserver.AccessConfig // what complete makes of the rest
}

// ownIssuer is the issuer of service accounts' tokens.
const ownIssuer = apiserver.DefaultTokenIssuer

func (o *accessOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.files.Authentication, "authentication-config", "", "AuthenticationConfiguration file: issuers of tokens, anonymous access; followed")
	fs.StringVar(&o.files.Authorization, "authorization-config", "", "AuthorizationConfiguration file: which authorizers are asked, webhooks too (default: Node, RBAC); followed")
	fs.StringVar(&o.tokenWebhook.Kubeconfig, "authentication-token-webhook-config-file", "", "kubeconfig of a webhook that knows tokens (TokenReview)")
	fs.StringVar(&o.tokenWebhook.Version, "authentication-token-webhook-version", "v1", "version of TokenReview that it speaks: v1 or v1beta1")
	fs.DurationVar(&o.tokenWebhook.CacheTTL, "authentication-token-webhook-cache-ttl", 2*time.Minute, "how long its answers are kept")
	fs.StringVar(&o.proxyCA, "requestheader-client-ca-file", "", "who signs the certificate of a proxy whose X-Remote headers are believed (default: pki/front-proxy-ca.crt)")
	fs.StringSliceVar(&o.proxy.AllowedNames, "requestheader-allowed-names", nil, "common names of such certificates (default: front-proxy-client for the default authority, else any)")
	fs.StringSliceVar(&o.proxy.UsernameHeaders, "requestheader-username-headers", nil, "headers that name the user (default X-Remote-User)")
	fs.StringSliceVar(&o.proxy.UIDHeaders, "requestheader-uid-headers", nil, "headers that name the user's uid (default: none)")
	fs.StringSliceVar(&o.proxy.GroupHeaders, "requestheader-group-headers", nil, "headers that name the user's groups (default X-Remote-Group)")
	fs.StringSliceVar(&o.proxy.ExtraHeaderPrefixes, "requestheader-extra-headers-prefix", nil, "prefixes of headers of extra (default X-Remote-Extra-)")
}

// complete reads the files; a fault in them is a wrong value of the flag.
func (o *accessOptions) complete() error {
	o.files.OwnIssuer = ownIssuer
	o.config = apiserver.AccessConfig{Files: o.files, FrontProxy: o.proxy, TokenWebhook: o.tokenWebhook}
	if err := o.files.Authenticate(&o.config.Rules); err != nil {
		return wrong("authentication-config", "%s", oneLine(err))
	}
	if err := o.files.Authorize(&o.config.Rules); err != nil {
		return wrong("authorization-config", "%s", oneLine(err))
	}
	if _, err := authwebhook.NewTokens(o.tokenWebhook); err != nil {
		return wrong("authentication-token-webhook-config-file", "%s", oneLine(err))
	}
	if o.proxyCA == "" {
		return nil
	}
	data, err := os.ReadFile(o.proxyCA)
	if err != nil {
		return wrong("requestheader-client-ca-file", "%v", err)
	}
	o.config.FrontProxy.CA = func() []byte { return data }
	if _, err := frontproxy.New(o.config.FrontProxy); err != nil {
		return wrong("requestheader-client-ca-file", "%s: %s", o.proxyCA, oneLine(err))
	}
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
