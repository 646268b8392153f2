package aggregation

import (
	"net/http"
	"strings"

	"k8s.io/client-go/transport"
)

// User is who a backend is told asks.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// checker is who the API server itself is to backends: the masters' group has every right there.
var checker = User{Name: "system:kube-aggregator", Groups: []string{"system:masters"}}

// credentials are the headers by which a client proves who it is.
var credentials = []string{"Authorization", "Proxy-Authorization"}

// identify says who asks, and takes away whatever the client itself has said of that. A name with underscores for hyphens goes as
// well: programs that read headers as CGI variables (RFC 3875, 4.1.18) cannot tell the two.
func identify(r *http.Request, user User) {
	for name := range r.Header {
		plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if strings.HasPrefix(plain, "x-remote-") || strings.HasPrefix(plain, "impersonate-") {
			delete(r.Header, name)
		}
	}
	for _, name := range credentials {
		r.Header.Del(name)
	}
	transport.SetAuthProxyHeaders(r, user.Name, user.UID, user.Groups, user.Extra)
}
