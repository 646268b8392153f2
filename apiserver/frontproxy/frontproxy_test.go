package frontproxy_test

import (
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"

	"kontiki/apiserver/frontproxy"
)

func TestHeaders(t *testing.T) {
	p, err := frontproxy.New(frontproxy.Config{UIDHeaders: []string{"X-Remote-Uid"}})
	require.NoError(t, err)
	header := http.Header{}
	_, ok := p.User(header)
	require.False(t, ok)
	header.Set("X-Remote-User", "jane")
	header.Set("x-remote-uid", "7")
	header.Add("X-Remote-Group", "dev")
	header.Add("X-Remote-Group", "")
	header.Add("X-Remote-Group", "ops")
	header.Add("X-Remote-Extra-Acme.org%2fScope", "a")
	header.Set("Accept", "x")
	user, ok := p.User(header)
	require.True(t, ok)
	require.Equal(t, authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"dev", "ops"},
		Extra: map[string]authenticationv1.ExtraValue{"acme.org/scope": {"a"}}}, user)
	header["X_Remote_User"], header["x_REMOTE_extra_y"] = []string{"admin"}, []string{"z"}
	p.Strip(header)
	require.Equal(t, http.Header{"Accept": {"x"}}, header)
}

func TestNoCertificate(t *testing.T) {
	for _, text := range []string{"nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		_, err := frontproxy.New(frontproxy.Config{CA: func() []byte { return []byte(text) }})
		require.ErrorIs(t, err, frontproxy.ErrCA)
	}
}

// Authorities that cannot be read any more, half of a file for one, make nobody a user, and the proxy nobody's voice.
func TestAuthoritiesThatBecomeUnreadable(t *testing.T) {
	broken := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	chain := []*x509.Certificate{{Raw: []byte("leaf")}, {Raw: []byte("root")}}
	var ca, clientCA []byte
	p, err := frontproxy.New(frontproxy.Config{CA: func() []byte { return ca }, ClientCA: func() []byte { return clientCA }})
	require.NoError(t, err)
	require.True(t, p.MayBeUser(chain))
	for _, both := range [][2][]byte{{broken, nil}, {nil, broken}} {
		ca, clientCA = both[0], both[1]
		require.False(t, p.MayBeUser(chain))
		require.False(t, p.Believed(chain))
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("X-Remote-Extra-%zz", "v")
	f.Add("X_Remote_User", "admin")
	f.Add("X-Remote-Extra-", "")
	p, err := frontproxy.New(frontproxy.Config{})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, name, value string) {
		header := http.Header{"X-Remote-User": {"jane"}, name: {value}}
		_, _ = p.User(header)
		p.Strip(header)
		_, ok := p.User(header)
		require.False(t, ok, "a header got past Strip")
	})
}

func FuzzCA(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte(""))
	f.Fuzz(func(t *testing.T, ca, clientCA []byte) {
		p, err := frontproxy.New(frontproxy.Config{CA: func() []byte { return ca }, ClientCA: func() []byte { return clientCA }})
		if err == nil {
			p.AddRoots(x509.NewCertPool())
		}
	})
}
