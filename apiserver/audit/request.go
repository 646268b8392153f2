package audit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// maxUserAgentBytes is Kubernetes' bound on what a client calls itself.
const maxUserAgentBytes = 1024

func userAgent(r *http.Request) string {
	agent := r.UserAgent()
	if len(agent) > maxUserAgentBytes {
		return agent[:maxUserAgentBytes] + "...TRUNCATED"
	}
	return agent
}

// sourceIPs are the addresses that the request claims to come from, and last the one that it does come from: only that one cannot
// be made up.
func sourceIPs(r *http.Request) []string {
	var out []string
	for _, ip := range utilnet.SourceIPs(r) {
		out = append(out, ip.String())
	}
	return out
}

// redacted stands for the value of a parameter that may be secret.
const redacted = "REDACTED"

// secretParameters are parts of names of parameters whose values no log should have.
var secretParameters = []string{"token", "password", "passwd", "secret", "api_key", "apikey", "signature", "credential"}

// requestURI is the path and query as the client sent them, but for values that may be secret: those of parameters that
// are called so, and all that are meant for what is behind a proxy. (kube-apiserver has these in its log.)
func requestURI(r *http.Request, q *Request) string {
	if r.URL.RawQuery == "" {
		return r.URL.RequestURI()
	}
	u := *r.URL
	pieces := strings.FieldsFunc(u.RawQuery, func(c rune) bool { return c == '&' || c == ';' })
	for i, piece := range pieces {
		name, _, hasValue := strings.Cut(piece, "=")
		if hasValue && (q.Subresource == "proxy" || mayBeSecret(name)) {
			pieces[i] = name + "=" + redacted
		}
	}
	if q.Subresource == "proxy" || slices.ContainsFunc(pieces, func(p string) bool { return strings.HasSuffix(p, "="+redacted) }) {
		u.RawQuery = strings.Join(pieces, "&")
	}
	return u.RequestURI()
}

func mayBeSecret(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretParameters, func(part string) bool { return strings.Contains(name, part) })
}
