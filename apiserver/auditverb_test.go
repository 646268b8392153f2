package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// A policy that records no reads must not miss a watch, however it is written.
func TestAuditVerbs(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                            "list",
		"/api/v1/pods?watch=true":                 "watch",
		"/api/v1/watch/pods":                      "watch",
		"/api/v1/watch/namespaces/default/pods/p": "watch",
		"/api/v1/namespaces/default/pods/p":       "get",
		"/version":                                "get",
	} {
		q := auditRequest(httptest.NewRequest(http.MethodGet, path, nil), authenticationv1.UserInfo{})
		require.Equal(t, want, q.Verb, path)
	}
}

// A certificate says who it is: the token beside it goes no further.
func TestTokensThatNobodyLooksAt(t *testing.T) {
	for protocols, want := range map[string]string{
		bearerProtocol + "c2VjcmV0":                   "",
		"v4.channel.k8s.io, " + bearerProtocol + "eA": "v4.channel.k8s.io",
		"v4.channel.k8s.io,v3.channel.k8s.io":         "v4.channel.k8s.io,v3.channel.k8s.io",
	} {
		header := http.Header{}
		header.Set("Sec-WebSocket-Protocol", protocols)
		dropSocketTokens(header)
		require.Equal(t, want, header.Get("Sec-WebSocket-Protocol"))
	}
}
