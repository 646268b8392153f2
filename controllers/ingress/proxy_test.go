package ingress

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecured: a client is led to the host that it asked for, at the port of HTTPS, whatever kind of host that is.
func TestSecured(t *testing.T) {
	for host, want := range map[string]string{
		"a.example":          "https://a.example:8443/x?y=z",
		"a.example:8080":     "https://a.example:8443/x?y=z",
		"192.0.2.1:80":       "https://192.0.2.1:8443/x?y=z",
		"[2001:db8::1]:8080": "https://[2001:db8::1]:8443/x?y=z",
		"[2001:db8::1]":      "https://[2001:db8::1]:8443/x?y=z",
	} {
		r := httptest.NewRequest("GET", "/x?y=z", nil)
		r.Host = host
		require.Equal(t, want, secured(r, hostOf(r), ":8443"), host)
	}
}
