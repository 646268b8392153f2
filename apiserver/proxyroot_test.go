package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProxyRoot: who reads …/proxy is sent to …/proxy/, where relative links lead on; a write is not.
func TestProxyRoot(t *testing.T) {
	_, c := start(t)
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	require.Equal(t, http.StatusCreated, c.post("/api/v1/namespaces/default/services", `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`).code)
	const path = "/api/v1/namespaces/default/services/s/proxy"
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		sent := c.do(method, path+"?a=%20b", "")
		require.Equal(t, http.StatusMovedPermanently, sent.code)
		require.Equal(t, path+"/?a=%20b", sent.header.Get("Location"))
	}
	for _, other := range []answer{c.get(path + "/"), c.do(http.MethodOptions, path, ""), c.post(path, "")} {
		require.Equal(t, http.StatusServiceUnavailable, other.code, "it has no endpoints")
	}
	require.Equal(t, http.StatusNotFound, c.get("/api/v1/namespaces/default/services/none/proxy").code)
}
