package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/livetls"
)

// clock is a time that the test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// service is an HTTPS server with the API server's certificate that tells callers who they are.
type service struct{ url string }

func serve(t *testing.T, p *PKI) service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{
		TLSConfig: livetls.Server(p.APIServing(), func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }),
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			leaf := r.TLS.VerifiedChains[0][0]
			w.Header().Set("Serial", leaf.SerialNumber.String())
			_, _ = io.WriteString(w, leaf.Subject.CommonName)
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return service{"https://" + listener.Addr().String()}
}

// caller calls the service with what source says at the time.
func caller(source livetls.Source) *http.Client {
	return &http.Client{Transport: livetls.NewTransport(source, func(c *tls.Config) *http.Transport {
		return &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	})}
}

func (s service) call(c *http.Client) (user, serial string, serving *x509.Certificate, err error) {
	answer, err := c.Get(s.url)
	if err != nil {
		return "", "", nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), answer.Header.Get("Serial"), answer.TLS.PeerCertificates[0], err
}

// TestRenewedWithoutARestart_RB05: forty minutes with certificates of ten: server and client go on, with other
// certificates, and a connection that is open stays open.
func TestRenewedWithoutARestart_RB05(t *testing.T) {
	c := &clock{}
	p, err := Open(filepath.Join(t.TempDir(), "pki"), Options{NodeName: "n1", CertificateLife: 10 * time.Minute, Now: c.now})
	require.NoError(t, err)
	_, _, err = p.Node("n1", nil)
	require.NoError(t, err)
	s := serve(t, p)
	node := caller(p.Live(func() *tls.Config { return p.NodeClient("n1") }))
	open, err := tls.Dial("tcp", s.url[len("https://"):], p.APIClient(Admin))
	require.NoError(t, err)
	defer open.Close()

	clients, servers := map[string]bool{}, map[string]bool{}
	for range 80 { // of half a minute
		c.advance(30 * time.Second)
		_, err := p.Refresh()
		require.NoError(t, err)
		user, serial, serving, err := s.call(node)
		require.NoError(t, err)
		require.Equal(t, "system:node:n1", user)
		clients[serial], servers[serving.SerialNumber.String()] = true, true
	}
	require.Greater(t, len(clients), 4)
	require.Greater(t, len(servers), 4)
	_, err = io.WriteString(open, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(open)
	require.NoError(t, err)
	require.Contains(t, string(answer), "200 OK")

	stale := p.APIClient(Admin)
	c.advance(11 * time.Minute)
	_, err = p.Refresh()
	require.NoError(t, err)
	_, _, _, err = s.call(caller(livetls.Static(stale)))
	require.Error(t, err, "an expired certificate is good for nothing")
}

// TestEachAtItsTime: renewal begins with the last third of a life, and not for all at once.
func TestEachAtItsTime(t *testing.T) {
	c := &clock{}
	p, err := Open(filepath.Join(t.TempDir(), "pki"), Options{Now: c.now})
	require.NoError(t, err)
	moments := map[time.Time]bool{}
	for name, pair := range p.current.Load().pairs {
		left := pair.leaf.NotAfter.Sub(RenewAt(pair.leaf)).Hours() / pair.leaf.NotAfter.Sub(pair.leaf.NotBefore).Hours()
		require.GreaterOrEqual(t, left, 0.33, name)
		require.Less(t, left, 0.44, name)
		moments[RenewAt(pair.leaf)] = true
	}
	require.Greater(t, len(moments), 3)
	changed, err := p.Refresh()
	require.NoError(t, err)
	require.False(t, changed, "nothing is due")

	c.advance(authorityLife - 20*24*time.Hour) // what is issued ends with its authority
	for _, want := range []bool{true, false} {
		changed, err := p.Refresh()
		require.NoError(t, err)
		require.Equal(t, want, changed, "what would not last longer is not issued again and again")
	}
}

// TestKeep: it looks every now and then, and when it is told; damage leaves what is in use, and is said once.
func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	synctest.Test(t, func(t *testing.T) {
		p, err := Open(dir, Options{CertificateLife: time.Hour})
		require.NoError(t, err)
		changes, failures := 0, &counter{}
		kept := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { defer close(kept); p.Keep(ctx, slog.New(failures), func() { changes++ }) }()
		before := p.Client(Admin)
		time.Sleep(41 * time.Minute)
		synctest.Wait()
		require.Positive(t, changes)
		require.NotEqual(t, before.CertPEM, p.Client(Admin).CertPEM)

		in := p.Client(Admin)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "scheduler.key"), []byte("garbage"), 0o600))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Equal(t, in, p.Client(Admin))
		require.EqualValues(t, 1, failures.errors.Load())
		require.NoError(t, os.Remove(filepath.Join(dir, "scheduler.key")))
		_, err = Renew(dir, []string{"admin"}, time.Now(), 0)
		require.NoError(t, err)
		p.Look()
		synctest.Wait()
		require.NotEqual(t, in, p.Client(Admin))
		cancel()
		<-kept
	})
}

// TestSwitchedOffPastExpiry_RB06: after thirteen months everything but the authorities has expired. Opening the
// directory issues all of it again; so does Renew beforehand, which needs to know nothing. Both ends trust each other.
func TestSwitchedOffPastExpiry_RB06(t *testing.T) {
	for name, revive := range map[string]func(dir string, now time.Time) error{
		"by a start": func(string, time.Time) error { return nil },
		"by command": func(dir string, now time.Time) error { _, err := Renew(dir, nil, now, 0); return err },
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{}
			dir := filepath.Join(t.TempDir(), "pki")
			options := Options{NodeName: "n1", Now: c.now, NodeIPs: []net.IP{net.IPv4(10, 0, 0, 1)}}
			p, err := Open(dir, options)
			require.NoError(t, err)
			_, _, err = p.Node("n1", nil)
			require.NoError(t, err)
			hash := p.Hash()
			c.advance(13 * 30 * 24 * time.Hour)
			expired := 0
			list, err := Inventory(dir, c.now())
			require.NoError(t, err)
			for _, e := range list {
				if e.State == "expired" {
					expired++
				}
			}
			require.Equal(t, 12, expired)
			require.NoError(t, revive(dir, c.now()))
			p, err = Open(dir, options)
			require.NoError(t, err)
			_, _, err = p.Node("n1", nil)
			require.NoError(t, err)
			require.Equal(t, hash, p.Hash())
			user, _, _, err := serve(t, p).call(caller(p.Live(func() *tls.Config { return p.APIClient(Admin) })))
			require.NoError(t, err)
			require.Equal(t, "kubernetes-admin", user)
			requireAllGood(t, dir, c.now())
		})
	}
}

// An authority that has expired too is signed again by the same command, with the key that it has: its hash stays.
func TestExpiredAuthorities_RB06(t *testing.T) {
	c := &clock{}
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{Now: c.now})
	require.NoError(t, err)
	hash, name := p.Hash(), p.ClusterID()
	other, _ := joined(t, dir)
	c.advance(11 * 365 * 24 * time.Hour)
	before := readAll(t, dir)
	_, err = Open(dir, Options{Now: c.now})
	require.ErrorIs(t, err, ErrExpired)
	require.ErrorContains(t, err, "ca.crt: expired on ")
	require.ErrorContains(t, err, "kontiki certs renew")
	_, err = Renew(dir, []string{"admin"}, c.now(), 0)
	require.ErrorContains(t, err, "renew ca first")
	require.Equal(t, before, readAll(t, dir))
	_, err = Renew(dir, nil, c.now(), 0)
	require.NoError(t, err)
	p, err = Open(dir, Options{Now: c.now})
	require.NoError(t, err)
	require.Equal(t, hash, p.Hash())
	require.Equal(t, name, p.ClusterID())
	requireAllGood(t, dir, c.now())

	_, err = Renew(other, nil, c.now(), 0) // each server by itself: the keys are the same
	require.NoError(t, err)
	second, err := Open(other, Options{NodeName: "n1", Now: c.now})
	require.NoError(t, err)
	_, err = handshake(t, second.StorePeer(), p.StorePeer())
	require.NoError(t, err)
	_, err = handshake(t, second.APIServing(), p.APIClient(Admin))
	require.NoError(t, err)
}

func requireAllGood(t *testing.T, dir string, now time.Time) {
	t.Helper()
	list, err := Inventory(dir, now)
	require.NoError(t, err)
	for _, e := range list {
		require.Equal(t, StateGood, e.State, e.File)
	}
}
