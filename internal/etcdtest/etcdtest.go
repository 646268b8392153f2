// Package etcdtest runs a real etcd (the module go.etcd.io/etcd/server/v3) inside a test, on free loopback
// ports and a temporary directory. Only tests may import it: the etcd server is not part of Kontiki.
//
//	e := etcdtest.Start(t)
//	store, err := etcd.Open(etcd.Config{Endpoints: []string{e.URL()}})
//	e.Cut()   // clients lose their connections, and make new ones
//	e.Down()  // clients lose their connections, and cannot make new ones until e.Up()
//	e.Mute()  // what clients ask is done, but they hear nothing, until their connections are cut
//	e.Stop()  // the server itself stops
//	e.Start() // and comes back with its data
//
// Clients reach it through a proxy (proxy.go), so that connections can be cut at any moment.
package etcdtest

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"kontiki/internal/freeport"
)

// startTimeout is how long an etcd may take to start before the test fails.
const startTimeout = 30 * time.Second

// Server is an etcd of one member, or a member of one of several, that belongs to a test.
type Server struct {
	t       testing.TB
	name    string
	cluster string // the names and peer URLs of all members
	dir     string
	client  url.URL // behind the proxy
	peer    url.URL
	proxy   *proxy
	options Options
	etcd    *embed.Etcd // nil while it is stopped
}

// Options of a server.
type Options struct {
	// CertFile, KeyFile and CAFile make it serve TLS, to clients that have a certificate of that CA.
	CertFile, KeyFile, CAFile string
}

// Start starts an etcd without TLS.
func Start(t testing.TB) *Server { return StartWith(t, Options{}) }

// StartWith starts an etcd.
func StartWith(t testing.TB, options Options) *Server {
	t.Helper()
	return start(t, options, 1)[0]
}

// StartMembers starts an etcd of n members without TLS.
func StartMembers(t testing.TB, n int) []*Server {
	t.Helper()
	return start(t, Options{}, n)
}

func start(t testing.TB, options Options, n int) []*Server {
	t.Helper()
	scheme := "http"
	if options.CertFile != "" {
		scheme = "https"
	}
	var servers []*Server
	var members []string
	for i := range n {
		s := &Server{
			t: t, name: fmt.Sprint("test", i), dir: t.TempDir(), options: options, client: freeURL(t, scheme), peer: freeURL(t, "http"),
		}
		s.proxy = startProxy(t, s.client.Host)
		servers, members = append(servers, s), append(members, s.name+"="+s.peer.String())
	}
	for _, s := range servers {
		s.cluster = strings.Join(members, ",")
		s.launch()
		t.Cleanup(s.Stop)
	}
	for _, s := range servers {
		s.waitReady()
	}
	return servers
}

func freeURL(t testing.TB, scheme string) url.URL {
	port, err := freeport.Take()
	require.NoError(t, err)
	return url.URL{Scheme: scheme, Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
}

// URL is the endpoint for clients.
func (s *Server) URL() string {
	return (&url.URL{Scheme: s.client.Scheme, Host: s.proxy.address}).String()
}

// DirectURL is the endpoint without the proxy: nothing that the test does to connections concerns it.
func (s *Server) DirectURL() string { return s.client.String() }

// Mute keeps what the server says from the clients, until their connections are cut.
func (s *Server) Mute() { s.proxy.setMute() }

// Cut cuts every client's connections.
func (s *Server) Cut() { s.proxy.cut() }

// Down cuts every client's connections and accepts no more, until Up.
func (s *Server) Down() { s.proxy.setDown(true) }

// Up undoes Down.
func (s *Server) Up() { s.proxy.setDown(false) }

// Start starts the server again and waits until it is part of a majority.
func (s *Server) Start() {
	s.t.Helper()
	s.launch()
	s.waitReady()
}

func (s *Server) launch() {
	s.t.Helper()
	c := embed.NewConfig()
	c.Dir, c.Name, c.InitialCluster = filepath.Join(s.dir, "etcd"), s.name, s.cluster
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{s.client}, []url.URL{s.client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{s.peer}, []url.URL{s.peer}
	c.ClientTLSInfo = transport.TLSInfo{
		CertFile: s.options.CertFile, KeyFile: s.options.KeyFile, TrustedCAFile: s.options.CAFile,
		ClientCertAuth: s.options.CAFile != "",
	}
	c.TickMs, c.ElectionMs = 10, 100
	c.UnsafeNoFsync = true // a killed test loses nothing that it would look at
	c.LogLevel, c.LogOutputs = "panic", []string{filepath.Join(s.dir, "log")}
	var err error
	s.etcd, err = embed.StartEtcd(c)
	require.NoError(s.t, err)
}

func (s *Server) waitReady() {
	s.t.Helper()
	select {
	case <-s.etcd.Server.ReadyNotify():
		s.Up()
	case <-time.After(startTimeout):
		require.Fail(s.t, "etcd does not become ready")
	}
}

// Stop stops the server, if it runs.
func (s *Server) Stop() {
	s.Down() // or etcd would wait for the clients to leave
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}
