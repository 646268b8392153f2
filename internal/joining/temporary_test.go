package joining

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// What may be otherwise in a moment is told from a refusal, after which nobody asks again.
func TestTemporaryErrors(t *testing.T) {
	for _, c := range []struct {
		what      string
		answer    http.HandlerFunc
		temporary bool
	}{
		{"the server dies", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			require.NoError(t, err)
			require.NoError(t, conn.Close())
		}, true},
		{"it dies and what was sent is lost", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			require.NoError(t, err)
			raw := conn.(*tls.Conn).NetConn().(*net.TCPConn)
			require.NoError(t, raw.SetLinger(0)) // a reset
			require.NoError(t, raw.Close())
		}, true},
		{"it dies in the middle of the answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, err := w.Write([]byte("{"))
			require.NoError(t, err)
		}, true},
		{"no leader", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, true},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, false},
		{"no JSON", func(http.ResponseWriter, *http.Request) {}, false},
	} {
		server := httptest.NewTLSServer(c.answer)
		trusting := server.Client().Transport.(*http.Transport).TLSClientConfig
		var into any
		err := getAs(t.Context(), server.URL, "/", trusting, &into)
		require.Error(t, err, c.what)
		require.Equal(t, c.temporary, IsTemporary(err), "%s: %v", c.what, err)
		err = getAs(t.Context(), server.URL, "/", &tls.Config{}, &into)
		require.False(t, IsTemporary(err), "not trusted: %v", err)
		server.Close()
		err = getAs(t.Context(), server.URL, "/", trusting, &into)
		require.True(t, IsTemporary(err), "nobody is there: %v", err)
	}
}
