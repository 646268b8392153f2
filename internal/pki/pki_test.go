package pki

import (
	"crypto/tls"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

func TestOpenCreatesOnceAndKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	_, err := Open(dir, Options{NodeName: "a"})
	require.NoError(t, err)
	before := readAll(t, dir)
	for _, name := range []string{"ca.crt", "store-ca.crt", "store-client.crt", "store-client.key", "admin.crt",
		"admin.key", "front-proxy-ca.crt", "sa.key"} {
		require.Contains(t, before, name)
	}
	_, err = Open(dir, Options{NodeName: "a"})
	require.NoError(t, err)
	require.Equal(t, before, readAll(t, dir))
	require.NoFileExists(t, dir+".new")
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{})
	require.NoError(t, err)
	_, _, err = p.Node("n1", nil)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
}

func TestCrashDuringCreationLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	require.NoError(t, os.MkdirAll(dir+".new", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir+".new", "ca.key"), []byte("half"), 0o600))
	_, err := Open(dir, Options{})
	require.NoError(t, err)
}

// Whatever one file is damaged in whatever way, the error names it and no authority changes.
func TestDamagedFilesAreNamed(t *testing.T) {
	damages := map[string]func(string) error{
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"cut short": func(path string) error { return os.Truncate(path, 60) },
		"garbage":   func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) },
	}
	for _, name := range []string{"ca.crt", "ca.key", "store-ca.crt", "admin.crt", "apiserver.key", "sa.key"} {
		for damage, do := range damages {
			t.Run(name+" "+damage, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "pki")
				_, err := Open(dir, Options{})
				require.NoError(t, err)
				require.NoError(t, do(filepath.Join(dir, name)))
				before := readAll(t, dir)
				_, err = Open(dir, Options{})
				require.ErrorIs(t, err, ErrDamaged)
				require.ErrorContains(t, err, name)
				require.Equal(t, before, readAll(t, dir))
			})
		}
	}
}

func TestHalfAnAuthorityIsRefused(t *testing.T) {
	for _, name := range []string{"ca.crt", "ca.key", "store-ca.key", "front-proxy-ca.crt", "sa.key"} {
		dir := filepath.Join(t.TempDir(), "pki")
		_, err := Open(dir, Options{})
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		_, err = Open(dir, Options{})
		require.ErrorIs(t, err, ErrHalf)
		require.ErrorContains(t, err, name)
	}
}

func TestAnotherAuthorityIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	_, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "ca.crt")))
	require.NoError(t, os.Remove(filepath.Join(dir, "ca.key")))
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrForeign)
}

func TestOwnAuthorityIsUsed(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "pki")
	_, err := Open(elsewhere, Options{})
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"ca.crt", "ca.key"} {
		data, err := os.ReadFile(filepath.Join(elsewhere, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	p, err := Open(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, readAll(t, elsewhere)["ca.crt"], string(p.CA()))
}

func TestServerCertificateFollowsItsNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{NodeName: "a", NodeIPs: []net.IP{net.IPv4(10, 0, 0, 1)}})
	require.NoError(t, err)
	leaf := p.APIServing().Certificates[0].Leaf
	for _, host := range []string{"localhost", "127.0.0.1", "10.96.0.1", "10.0.0.1", "a", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"} {
		require.NoError(t, leaf.VerifyHostname(host), host)
	}
	admin := p.Client(Admin).CertPEM

	p, err = Open(dir, Options{NodeName: "a", NodeIPs: []net.IP{net.IPv4(10, 0, 0, 2)}, SANs: []string{"k.example", "192.0.2.7"}})
	require.NoError(t, err)
	leaf = p.APIServing().Certificates[0].Leaf
	for _, host := range []string{"10.0.0.2", "k.example", "192.0.2.7"} {
		require.NoError(t, leaf.VerifyHostname(host), host)
	}
	require.Equal(t, admin, p.Client(Admin).CertPEM, "only what lacks a name is issued again")
}

// TestPeerCertificateIsForOneMachine: a member cannot show its certificate where another is expected, nor go by its name.
// One of an earlier version, which named localhost, is issued again.
func TestPeerCertificateIsForOneMachine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	options := Options{NodeName: "a", NodeIPs: []net.IP{net.IPv4(10, 0, 0, 1)}}
	p, err := Open(dir, options)
	require.NoError(t, err)
	requireOnly := func(p *PKI) {
		t.Helper()
		leaf := p.StorePeer().Certificates[0].Leaf
		require.Equal(t, []string{"a"}, leaf.DNSNames)
		require.Len(t, leaf.IPAddresses, 1)
		for host, good := range map[string]bool{"a": true, "10.0.0.1": true, "b": false, "10.0.0.2": false, "localhost": false, "127.0.0.1": false} {
			require.Equal(t, good, leaf.VerifyHostname(host) == nil, host)
		}
	}
	requireOnly(p)
	serving := p.StorePeer().Certificates[0].Leaf.SerialNumber

	wide := p.opts.peerProfile()
	wide.names = append(wide.names, localhost)
	require.NoError(t, p.current.Load().store.issue(filepath.Join(dir, storePeer), wide.template(), time.Now(), certificateLife))
	p, err = Open(dir, options)
	require.NoError(t, err)
	requireOnly(p)
	require.NotEqual(t, serving, p.StorePeer().Certificates[0].Leaf.SerialNumber)
	again, err := Open(dir, options)
	require.NoError(t, err)
	require.Equal(t, p.Client(storePeer).CertPEM, again.Client(storePeer).CertPEM, "once is enough")

	named, err := Open(filepath.Join(t.TempDir(), "pki"), Options{NodeName: localhost})
	require.NoError(t, err)
	require.Equal(t, []string{localhost}, named.StorePeer().Certificates[0].Leaf.DNSNames)
}

func TestRenewalOnStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{})
	require.NoError(t, err)
	old := p.Client(Admin).leaf
	later := func(d time.Duration) Options {
		return Options{Now: func() time.Time { return time.Now().Add(d) }}
	}
	p, err = Open(dir, later(certificateLife/2))
	require.NoError(t, err)
	require.Equal(t, old.SerialNumber, p.Client(Admin).leaf.SerialNumber)
	p, err = Open(dir, later(certificateLife*2/3+time.Hour))
	require.NoError(t, err)
	require.True(t, p.Client(Admin).leaf.NotAfter.After(old.NotAfter))
	_, err = Open(dir, later(authorityLife+time.Hour))
	require.ErrorIs(t, err, ErrExpired)
}

// Every server configuration accepts the client it is made for, and no other authority's.
func TestHandshakes(t *testing.T) {
	p, err := Open(filepath.Join(t.TempDir(), "pki"), Options{NodeName: "n1"})
	require.NoError(t, err)
	_, _, err = p.Node("n1", nil)
	require.NoError(t, err)
	cluster := p.AgentClient().RootCAs
	adminTLS := p.APIClient(Admin)
	storeToAPI := p.StoreClient()
	storeToAPI.RootCAs = cluster
	adminToStore := p.APIClient(Admin)
	adminToStore.RootCAs = p.StoreClient().RootCAs
	cases := []struct {
		name           string
		server, client *tls.Config
		user           string // empty: refused
	}{
		{"admin calls the API", p.APIServing(), adminTLS, "kubernetes-admin"},
		{"node calls the API", p.APIServing(), p.NodeClient("n1"), "system:node:n1"},
		{"store certificate at the API", p.APIServing(), storeToAPI, ""},
		{"API calls the agent", p.AgentServing("n1"), p.AgentClient(), "kube-apiserver-kubelet-client"},
		{"nobody calls the agent", p.AgentServing("n1"), &tls.Config{RootCAs: cluster}, ""},
		{"peers", p.StorePeer(), p.StorePeer(), "kontiki-store-peer"},
		{"etcd client", p.StoreServing(), p.StoreClient(), "kontiki-store-client"},
		{"admin at the store", p.StoreServing(), adminToStore, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			user, err := handshake(t, c.server, c.client)
			if c.user == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.user, user)
		})
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	p, err := Open(filepath.Join(dir, "pki"), Options{})
	require.NoError(t, err)
	path := filepath.Join(dir, "admin.kubeconfig")
	require.NoError(t, p.WriteKubeconfig(path, "https://127.0.0.1:6443", p.Client(Admin)))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	require.Equal(t, "https://127.0.0.1:6443", config.Host)
	require.Equal(t, p.CA(), config.CAData)
	require.Equal(t, p.Client(Admin).CertPEM, config.CertData)
	require.Equal(t, p.Client(Admin).KeyPEM, config.KeyData)
}

// handshake returns the user that the server saw. In TLS 1.3 the client learns of a refusal only
// with its first read, so the server's word counts.
func handshake(t *testing.T, server, client *tls.Config) (string, error) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	client = client.Clone()
	client.ServerName = "n1"
	if certificates := client.Certificates; len(certificates) > 0 {
		// Shown even to a server that has not asked for this authority's, as an attacker would.
		client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &certificates[0], nil
		}
	}
	go func() {
		c := tls.Client(b, client)
		c.Handshake()
		c.Read(make([]byte, 1)) // takes the alert, or the end
		b.Close()
	}()
	require.NoError(t, a.SetDeadline(time.Now().Add(10*time.Second)))
	s := tls.Server(a, server)
	if err := s.Handshake(); err != nil {
		return "", err
	}
	return s.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func readAll(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() || e.Name() == ".lock" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(data)
	}
	return files
}
