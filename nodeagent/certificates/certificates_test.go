package certificates_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/controllers"
	"kontiki/internal/apiclient"
	"kontiki/internal/bootstraptoken"
	"kontiki/internal/joining"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
	"kontiki/nodeagent/certificates"
)

var nodeIP = net.IPv4(10, 0, 0, 7)

// cluster is a control plane with controllers, whose certificates live by a clock that the test moves.
type cluster struct {
	*testcluster.Cluster
	t     *testing.T
	ahead atomic.Int64
	dir   string // of the node's certificates
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: filepath.Join(t.TempDir(), "pki")}
	c.Cluster = testcluster.StartWithKeys(t, pki.Options{Now: c.now, CertificateLife: time.Hour})
	c.Go("controllers", func(ctx context.Context) error {
		config := c.servers().Live(c.PKI.Live(func() *tls.Config { return c.PKI.APIClient(pki.ControllerManager) }))
		return controllers.Run(ctx, controllers.Config{REST: config, RootCA: c.PKI.CA, Signer: c.PKI, Log: c.Log})
	})
	return c
}

func (c *cluster) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// advance moves the time and has the servers' certificates follow, as pki.Keep does.
func (c *cluster) advance(d time.Duration) {
	c.t.Helper()
	c.ahead.Add(int64(d))
	c.refresh()
}

func (c *cluster) refresh() {
	c.t.Helper()
	_, err := c.PKI.Refresh()
	require.NoError(c.t, err)
}

func (c *cluster) server() string { return c.REST(pki.Admin).Host }

func (c *cluster) servers() *apiclient.Servers { return serversAt(c.server()) }

func serversAt(url string) *apiclient.Servers {
	return apiclient.OpenServers(apiclient.ServersConfig{Given: []string{url}})
}

// admin is a client whose certificate follows the time.
func (c *cluster) admin() kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.servers().Live(c.PKI.Live(func() *tls.Config { return c.PKI.APIClient(pki.Admin) })))
	require.NoError(c.t, err)
	return client
}

func (c *cluster) token(spec bootstraptoken.Spec) *bootstraptoken.Join {
	c.t.Helper()
	token, err := bootstraptoken.New()
	require.NoError(c.t, err)
	_, err = c.admin().CoreV1().Secrets(bootstraptoken.Namespace).Create(c.t.Context(), bootstraptoken.ToSecret(token, spec), metav1.CreateOptions{})
	require.NoError(c.t, err)
	return &bootstraptoken.Join{CAHash: c.PKI.Hash(), Token: token}
}

func (c *cluster) config(token *bootstraptoken.Join) certificates.Config {
	return certificates.Config{Dir: c.dir, Servers: c.servers(), NodeName: "w1", NodeIPs: []net.IP{nodeIP}, Token: token, Now: c.now, Log: c.Log}
}

func (c *cluster) join() *certificates.Manager {
	c.t.Helper()
	m, err := certificates.Open(c.t.Context(), c.config(c.token(bootstraptoken.Spec{Authentication: true})))
	require.NoError(c.t, err)
	return m
}

// works says whether the node is let in, and the API server gets through to the node.
func (c *cluster) works(m *certificates.Manager) error {
	client, err := kubernetes.NewForConfig(c.servers().Live(m.Client))
	require.NoError(c.t, err)
	if _, err := client.CoreV1().Nodes().Get(c.t.Context(), "w1", metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = served(c.t, m, c.PKI.AgentClient())
	return err
}

// served calls the node as config says and returns what it shows.
func served(t *testing.T, m *certificates.Manager, config *tls.Config) (*x509.Certificate, error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	config.ServerName = nodeIP.String()
	client := tls.Client(b, config)
	go func() { defer b.Close(); _ = client.Handshake(); _, _ = client.Read(make([]byte, 1)) }()
	server := tls.Server(a, m.Serving())
	require.NoError(t, a.SetDeadline(time.Now().Add(10*time.Second)))
	if err := server.Handshake(); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates[0], nil
}

// keep runs Keep; the result makes it look at once, by starting it anew.
func (c *cluster) keep(m *certificates.Manager) (look func()) {
	stop := c.Go("certificates", m.Keep)
	return func() { stop(); stop = c.Go("certificates", m.Keep) }
}

func TestJoin(t *testing.T) {
	c := start(t)
	token := c.token(bootstraptoken.Spec{Authentication: true})
	m, err := certificates.Open(t.Context(), c.config(token))
	require.NoError(t, err)
	_, err = served(t, m, c.PKI.AgentClient())
	require.Error(t, err, "not before it has a certificate")
	c.keep(m)
	require.Eventually(t, func() bool { return c.works(m) == nil }, time.Minute, 20*time.Millisecond)
	_, err = served(t, m, &tls.Config{InsecureSkipVerify: true})
	require.ErrorContains(t, err, "certificate")

	require.NoError(t, filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		if !d.IsDir() {
			require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), path)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotContains(t, string(data), token.Token.Secret, path)
		}
		return nil
	}))
	list, err := pki.Inventory(c.dir, c.now())
	require.NoError(t, err)
	require.Len(t, list, 3)
	for _, e := range list {
		require.Equal(t, pki.StateGood, e.State, e.File)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig"))
	require.NoError(t, err)
	require.Equal(t, c.server(), config.Host)

	_, err = certificates.Open(t.Context(), certificates.Config{Dir: c.dir, Servers: c.servers(), NodeName: "w2", Token: token})
	require.ErrorContains(t, err, "is for system:node:w1")
}

// impostor stands in for the API server with a certificate of its own. What it is sent after the handshake it keeps.
type impostor struct {
	url string
	mu  sync.Mutex
	got bytes.Buffer
}

func newImpostor(t *testing.T, behind []*x509.Certificate) *impostor {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	chain := [][]byte{der}
	for _, c := range behind {
		chain = append(chain, c.Raw)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}})
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	i := &impostor{url: "https://" + listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			data := make([]byte, 4096)
			for {
				n, err := conn.Read(data)
				i.mu.Lock()
				i.got.Write(data[:n])
				i.mu.Unlock()
				if err != nil {
					break
				}
			}
			conn.Close()
		}
	}()
	return i
}

// TestJoinIsRefused_RB03: whatever is wrong with a token or with who answers is told apart, the secret part is not sent to
// whom it is not for, and nothing is left behind that a right join would trip over.
func TestJoinIsRefused_RB03(t *testing.T) {
	c := start(t)
	good := c.token(bootstraptoken.Spec{Authentication: true})
	other, err := pki.Open(filepath.Join(t.TempDir(), "pki"), pki.Options{})
	require.NoError(t, err)
	ours, err := pki.ParseCertificates(c.PKI.CA())
	require.NoError(t, err)
	selfSigned, relaying := newImpostor(t, nil), newImpostor(t, ours)

	expired := c.token(bootstraptoken.Spec{Authentication: true, Expires: time.Now().Add(2 * time.Second)})
	secrets := c.admin().CoreV1().Secrets(bootstraptoken.Namespace)
	require.Eventually(t, func() bool { // the cleaner has deleted it
		_, err := secrets.Get(t.Context(), expired.Token.SecretName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, 20*time.Second, 20*time.Millisecond)
	signing := c.token(bootstraptoken.Spec{Signing: true})
	deleted := c.token(bootstraptoken.Spec{Authentication: true})
	require.NoError(t, secrets.Delete(t.Context(), deleted.Token.SecretName(), metav1.DeleteOptions{}))

	for name, try := range map[string]struct {
		token  bootstraptoken.Join
		server string
		is     error
		says   string
	}{
		"wrong hash":            {bootstraptoken.Join{CAHash: strings.Repeat("00", 32), Token: good.Token}, c.server(), joining.ErrOtherCluster, "CA hash"},
		"another cluster's":     {bootstraptoken.Join{CAHash: other.Hash(), Token: good.Token}, c.server(), joining.ErrOtherCluster, "CA hash"},
		"self-signed impostor":  {*good, selfSigned.url, joining.ErrOtherCluster, "CA hash"},
		"impostor with the CA":  {*good, relaying.url, joining.ErrImpostor, "not good for this address"},
		"expired":               {*expired, c.server(), joining.ErrRefused, "has expired"},
		"deleted":               {*deleted, c.server(), joining.ErrRefused, "it was revoked"},
		"not for joining":       {*signing, c.server(), joining.ErrRefused, ""},
		"not known":             {bootstraptoken.Join{CAHash: good.CAHash, Token: bootstraptoken.Token{ID: "abcdef", Secret: "0123456789abcdef"}}, c.server(), joining.ErrRefused, "abcdef"},
		"name of another holds": {bootstraptoken.Join{CAHash: good.CAHash, Token: bootstraptoken.Token{ID: good.Token.ID, Secret: "0123456789abcdef"}}, c.server(), joining.ErrRefused, good.Token.ID},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.config(&try.token)
			config.Servers = serversAt(try.server)
			_, err := certificates.Open(t.Context(), config)
			require.ErrorIs(t, err, try.is)
			require.ErrorContains(t, err, try.says)
			require.NotContains(t, err.Error(), try.token.Token.Secret)
			require.NoDirExists(t, c.dir)
		})
	}
	for _, i := range []*impostor{selfSigned, relaying} {
		i.mu.Lock()
		require.Zero(t, i.got.Len(), "nothing is sent, let alone the secret")
		i.mu.Unlock()
	}
	_, err = certificates.Open(t.Context(), c.config(nil))
	require.ErrorIs(t, err, certificates.ErrNotJoined)
	require.ErrorContains(t, err, "kontiki token create")
	_, err = certificates.Open(t.Context(), c.config(good))
	require.NoError(t, err)
}

// TestTokenIsGone_RB04: a node that has joined needs no token any more, nor the server to start.
func TestTokenIsGone_RB04(t *testing.T) {
	c := start(t)
	token := c.token(bootstraptoken.Spec{Authentication: true})
	m, err := certificates.Open(t.Context(), c.config(token))
	require.NoError(t, err)
	c.keep(m)
	require.Eventually(t, func() bool { return c.works(m) == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(t, c.admin().CoreV1().Secrets(bootstraptoken.Namespace).Delete(t.Context(), token.Token.SecretName(), metav1.DeleteOptions{}))
	for _, again := range []*bootstraptoken.Join{nil, token, {CAHash: strings.Repeat("00", 32), Token: token.Token}} {
		config := c.config(again)
		m, err = certificates.Open(t.Context(), config)
		require.NoError(t, err)
		require.NoError(t, c.works(m))
		config.Servers = serversAt("https://127.0.0.1:1")
		m, err = certificates.Open(t.Context(), config)
		require.NoError(t, err)
		_, err = served(t, m, c.PKI.AgentClient())
		require.NoError(t, err)
	}
}

// TestRenewal_RB05: for four times its life a node's certificates are renewed by itself, and it is let in all the time.
func TestRenewal_RB05(t *testing.T) {
	c := start(t)
	m := c.join()
	look := c.keep(m)
	require.Eventually(t, func() bool { return c.works(m) == nil }, time.Minute, 20*time.Millisecond)
	clients, servings := map[string]bool{}, map[string]bool{}
	for range 12 { // of twenty minutes, with certificates of an hour
		shown := func() string {
			leaf, err := served(t, m, c.PKI.AgentClient())
			require.NoError(t, err)
			return leaf.SerialNumber.String()
		}
		mine := func() string { return m.Client().Certificates[0].Leaf.SerialNumber.String() }
		c.advance(20 * time.Minute)
		require.NoError(t, c.works(m))
		look()
		require.Eventually(t, func() bool { // nothing is due any more
			leaf, err := served(t, m, c.PKI.AgentClient())
			return err == nil && c.now().Before(pki.RenewAt(leaf)) && c.now().Before(pki.RenewAt(m.Client().Certificates[0].Leaf))
		}, 20*time.Second, 10*time.Millisecond)
		clients[mine()], servings[shown()] = true, true
	}
	require.Greater(t, len(clients), 3)
	require.Greater(t, len(servings), 3)
}

// TestSwitchedOff_RB06: a node that was switched off past the end of its certificate says so, and comes back with a token.
func TestSwitchedOff_RB06(t *testing.T) {
	c := start(t)
	c.join()
	c.advance(13 * 30 * 24 * time.Hour)
	_, err := certificates.Open(t.Context(), c.config(nil))
	require.ErrorIs(t, err, certificates.ErrExpired)
	require.ErrorContains(t, err, "--token")
	m := c.join()
	c.keep(m)
	require.Eventually(t, func() bool { return c.works(m) == nil }, time.Minute, 20*time.Millisecond)
}

// TestFollowsRotation: the node trusts the new authority as well, gets certificates of it, then drops the old one.
func TestFollowsRotation(t *testing.T) {
	c := start(t)
	m := c.join()
	look := c.keep(m)
	works := func() {
		t.Helper()
		require.Eventually(t, func() bool { return c.works(m) == nil }, time.Minute, 10*time.Millisecond)
	}
	works()
	token := c.token(bootstraptoken.Spec{Authentication: true}) // with the old hash
	require.NoError(t, pki.StartRotation(c.PKI.Dir(), []string{"ca"}, c.now()))
	c.refresh()
	require.NoError(t, c.works(m), "before it has followed, too")
	late := c.config(token)
	late.Dir, late.NodeName = filepath.Join(t.TempDir(), "pki"), "w2"
	_, err := certificates.Open(t.Context(), late)
	require.NoError(t, err, "a token of before the rotation is good")
	look()
	roots, err := pki.NewRoots(c.PKI.Dir())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		leaf, err := served(t, m, c.PKI.AgentClient())
		require.NoError(t, err)
		_, byNew := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		_, mine := m.Client().Certificates[0].Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return byNew == nil && mine == nil
	}, 20*time.Second, 10*time.Millisecond)
	works()
	require.NoError(t, pki.FinishRotation(c.PKI.Dir(), []string{"ca"}, c.now()))
	c.refresh()
	works()
	look()
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(filepath.Join(c.dir, "ca.crt"))
		require.NoError(t, err)
		return bytes.Equal(data, c.PKI.CA())
	}, 20*time.Second, 10*time.Millisecond)
	works()
}
