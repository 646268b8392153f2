package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// serveOn serves handler-less Servers on a free port of loopback, over UDP and TCP, and returns its address.
func serveOn(t *testing.T, s *Server) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	packets, err := net.ListenPacket("udp", listener.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, []net.PacketConn{packets}, []net.Listener{listener}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return listener.Addr().String()
}

func serverOf(z *zone, upstreams ...string) *Server {
	return &Server{resolver: &resolver{zone: z, forward: newCachedForwarder(upstreams)}, log: slog.New(slog.DiscardHandler)}
}

// upstream is a resolver outside the cluster. It counts the questions.
func upstream(t *testing.T, answer func(q dns.Question, reply *dns.Msg)) (address string, asked *atomic.Int32) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	asked = new(atomic.Int32)
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		asked.Add(1)
		reply := new(dns.Msg)
		reply.SetReply(query)
		answer(query.Question[0], reply)
		_ = w.WriteMsg(reply)
	})}
	started := make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	go func() { _ = server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { require.NoError(t, server.Shutdown()) })
	return packets.LocalAddr().String(), asked
}

func record(t *testing.T, text string) dns.RR {
	r, err := dns.NewRR(text)
	require.NoError(t, err)
	return r
}

func ask(t *testing.T, server, network, name string, kind uint16) *dns.Msg {
	query := new(dns.Msg)
	query.SetQuestion(name, kind)
	reply, _, err := (&dns.Client{Net: network}).Exchange(query, server)
	require.NoError(t, err)
	return reply
}

// TestQueries asks a server over the network: about the zone, about others, and both at once.
func TestQueries(t *testing.T) {
	other, asked := upstream(t, func(q dns.Question, reply *dns.Msg) {
		if q.Name != "www.example.org." {
			reply.Rcode = dns.RcodeNameError
			reply.Ns = append(reply.Ns, record(t, "example.org. 3600 IN SOA ns.example.org. x.example.org. 1 2 3 4 3600"))
			return
		}
		reply.Answer = append(reply.Answer, record(t, "www.example.org. 20 IN A 192.0.2.7"))
	})
	server := serveOn(t, serverOf(shop(t), other))

	reply := ask(t, server, "udp", "web.shop.svc.cluster.local.", dns.TypeA)
	require.True(t, reply.Authoritative)
	require.Len(t, reply.Answer, 1)
	require.EqualValues(t, ttlSeconds, reply.Answer[0].Header().Ttl)

	reply = ask(t, server, "tcp", "none.shop.svc.cluster.local.", dns.TypeA)
	require.Equal(t, dns.RcodeNameError, reply.Rcode)
	require.EqualValues(t, ttlSeconds, reply.Ns[0].(*dns.SOA).Minttl)

	// A Service that is a name elsewhere comes with that name's address.
	reply = ask(t, server, "udp", "outside.shop.svc.cluster.local.", dns.TypeA)
	require.Len(t, reply.Answer, 2)
	require.Equal(t, "www.example.org.", reply.Answer[0].(*dns.CNAME).Target)
	require.Equal(t, "192.0.2.7", reply.Answer[1].(*dns.A).A.String())
	require.EqualValues(t, 1, asked.Load())
	reply = ask(t, server, "udp", "WWW.example.org.", dns.TypeA)
	require.Equal(t, "WWW.example.org.", reply.Answer[0].Header().Name)
	require.EqualValues(t, 1, asked.Load(), "the second time it is remembered")

	require.Equal(t, dns.RcodeNameError, ask(t, server, "udp", "x.example.org.", dns.TypeA).Rcode)
	require.Equal(t, dns.RcodeNameError, ask(t, server, "udp", "x.example.org.", dns.TypeA).Rcode)
	require.EqualValues(t, 2, asked.Load(), "and so is what is not there")
}

// TestNamesOfPods_NW09 asks for a pod's name before the pod is there, and after: nothing in between is remembered.
func TestNamesOfPods_NW09(t *testing.T) {
	z := shop(t)
	server := serveOn(t, serverOf(z))
	name := "db-9.db.shop.svc.cluster.local."
	require.Equal(t, dns.RcodeNameError, ask(t, server, "udp", name, dns.TypeA).Rcode)
	require.NoError(t, z.cluster.slices.Add(slice("db-by-hand", "db", slicePort("http", 8080), reachable("db-9", "10.244.3.9"))))
	reply := ask(t, server, "udp", name, dns.TypeA)
	require.Equal(t, "10.244.3.9", reply.Answer[0].(*dns.A).A.String())

	none := ask(t, server, "udp", name, dns.TypeAAAA)
	require.Equal(t, dns.RcodeSuccess, none.Rcode)
	require.Empty(t, none.Answer)
}

// TestLargeReply_NW09 has 60 endpoints: too many for a datagram, so the client is told to come by TCP.
func TestLargeReply_NW09(t *testing.T) {
	z := shop(t)
	var endpoints []discoveryv1.Endpoint
	for i := range 60 {
		endpoints = append(endpoints, reachable(fmt.Sprint("many-", i), fmt.Sprint("10.244.7.", i)))
	}
	require.NoError(t, z.cluster.services.Add(service("many", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone})))
	require.NoError(t, z.cluster.slices.Add(slice("many", "many", slicePort("http", 80), endpoints...)))
	server := serveOn(t, serverOf(z))

	reply := ask(t, server, "udp", "_http._tcp.many.shop.svc.cluster.local.", dns.TypeSRV)
	require.True(t, reply.Truncated)
	reply.Compress = true // as it was on the wire
	require.LessOrEqual(t, reply.Len(), dns.MinMsgSize)
	reply = ask(t, server, "tcp", "_http._tcp.many.shop.svc.cluster.local.", dns.TypeSRV)
	require.False(t, reply.Truncated)
	require.Len(t, reply.Answer, 60)
	require.Len(t, reply.Extra, 60)
}

// TestUpstreamAway shows what happens when a resolver is down: the next is asked, and without one the client hears so.
func TestUpstreamAway(t *testing.T) {
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	closed.Close()
	away := closed.LocalAddr().String()
	other, _ := upstream(t, func(q dns.Question, reply *dns.Msg) {
		reply.Answer = append(reply.Answer, record(t, q.Name+" 0 IN A 192.0.2.8"))
	})
	both := serverOf(shop(t), away, other)
	server := serveOn(t, both)
	require.Len(t, ask(t, server, "udp", "a.example.org.", dns.TypeA).Answer, 1)
	require.EqualValues(t, 1, both.resolver.forward.forward.good.Load(), "it is asked first from now on")

	server = serveOn(t, serverOf(shop(t), away))
	require.Equal(t, dns.RcodeServerFailure, ask(t, server, "udp", "a.example.org.", dns.TypeA).Rcode)
	server = serveOn(t, serverOf(shop(t)))
	require.Equal(t, dns.RcodeServerFailure, ask(t, server, "udp", "a.example.org.", dns.TypeA).Rcode)
}

// TestLoopOfNames has a Service that is an alias of itself.
func TestLoopOfNames(t *testing.T) {
	z := shop(t)
	require.NoError(t, z.cluster.services.Add(service("loop", corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "loop.shop.svc.cluster.local",
	})))
	reply := ask(t, serveOn(t, serverOf(z)), "udp", "loop.shop.svc.cluster.local.", dns.TypeA)
	require.Equal(t, dns.RcodeServerFailure, reply.Rcode)
}

// TestBeforeTheInformersHaveListed must not say that names are not there.
func TestBeforeTheInformersHaveListed(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0) // never started
	s, err := New(Config{Domain: "cluster.local", Informers: factory, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	server := serveOn(t, s)
	for _, name := range []string{"web.shop.svc.cluster.local.", "20.0.96.10.in-addr.arpa."} {
		require.Equal(t, dns.RcodeServerFailure, ask(t, server, "udp", name, dns.TypeA).Rcode, name)
	}
}

// TestOddQueries are queries that no resolver sends.
func TestOddQueries(t *testing.T) {
	r := serverOf(shop(t)).resolver
	query := func(change func(*dns.Msg)) *dns.Msg {
		q := new(dns.Msg)
		q.SetQuestion("web.shop.svc.cluster.local.", dns.TypeA)
		change(q)
		return r.resolve(t.Context(), q)
	}
	require.Equal(t, dns.RcodeNotImplemented, query(func(q *dns.Msg) { q.Opcode = dns.OpcodeUpdate }).Rcode)
	require.Equal(t, dns.RcodeFormatError, query(func(q *dns.Msg) { q.Question = nil }).Rcode)
	require.Equal(t, dns.RcodeFormatError, query(func(q *dns.Msg) { q.Question = append(q.Question, q.Question[0]) }).Rcode)
	require.Equal(t, dns.RcodeRefused, query(func(q *dns.Msg) { q.Question[0].Qclass = dns.ClassCHAOS }).Rcode)
	any := query(func(q *dns.Msg) { q.Question[0].Qtype = dns.TypeANY })
	require.Equal(t, "RFC8482", any.Answer[0].(*dns.HINFO).Cpu)
}

// TestHostUpstreams leaves out the server itself.
func TestHostUpstreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(path, []byte("search x\nnameserver 10.96.0.10\nnameserver 192.0.2.53\nnameserver fd00::53\nnameserver nonsense\n"), 0o600))
	got, err := HostUpstreams(path, []netip.Addr{netip.MustParseAddr("10.96.0.10")})
	require.NoError(t, err)
	require.Equal(t, []string{"192.0.2.53:53", "[fd00::53]:53"}, got)
	_, err = HostUpstreams(path+"x", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestConfig(t *testing.T) {
	for _, domain := range []string{"", ".", "a..b"} {
		_, err := New(Config{Domain: domain, Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0), Log: slog.Default()})
		require.ErrorIs(t, err, ErrConfig, domain)
	}
}
