package dns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// testZone is a zone of these objects, all listed.
func testZone(t *testing.T, objects ...any) *zone {
	z := &zone{domain: "cluster.local.", server: []string{"10.96.0.10", "fd00:96::a"}, cluster: cluster{
		services:   cache.NewIndexer(cache.MetaNamespaceKeyFunc, serviceIndexes),
		slices:     cache.NewIndexer(cache.MetaNamespaceKeyFunc, sliceIndexes),
		namespaces: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
	}}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Service:
			require.NoError(t, z.cluster.services.Add(o))
		case *discoveryv1.EndpointSlice:
			require.NoError(t, z.cluster.slices.Add(o))
		case string:
			require.NoError(t, z.cluster.namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o}}))
		default:
			t.Fatalf("what is a %T", o)
		}
	}
	return z
}

func service(name string, spec corev1.ServiceSpec) *corev1.Service {
	if len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
}

func slice(name, service string, port *discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Endpoints:  endpoints,
	}
	if port != nil {
		s.Ports = []discoveryv1.EndpointPort{*port}
	}
	return s
}

func slicePort(name string, port int32) *discoveryv1.EndpointPort {
	return &discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: ptr.To(corev1.ProtocolTCP)}
}

func reachable(hostname string, addresses ...string) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: addresses}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

func unready(e discoveryv1.Endpoint) discoveryv1.Endpoint {
	e.Conditions.Ready = ptr.To(false)
	return e
}

// shop is the cluster of the tests below.
func shop(t *testing.T) *zone {
	named := corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	unnamed := corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: 80}
	return testZone(t, "shop", "empty",
		service("web", corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.20"}, Ports: []corev1.ServicePort{named}}),
		service("plain", corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.21"}, Ports: []corev1.ServicePort{unnamed}}),
		service("dual", corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.22", "fd00:96::22"}, Ports: []corev1.ServicePort{named}}),
		service("db", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{named}}),
		slice("db-4", "db", slicePort("http", 8080),
			reachable("db-0", "10.244.0.5"), reachable("db-1", "10.244.0.6"), unready(reachable("db-2", "10.244.0.7")), reachable("", "10.244.0.8")),
		slice("db-6", "db", slicePort("http", 8080), reachable("db-0", "fd00:244::5")),
		service("idle", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}),
		service("outside", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "www.example.org"}),
	)
}

// TestSpecification asks for the names of each section of the Kubernetes DNS specification, and for those beside them.
func TestSpecification(t *testing.T) {
	z := shop(t)
	for _, c := range []struct{ kind, name, want string }{
		{"TXT", "dns-version", "TXT \"1.1.0\""},                                                       // 2.2
		{"A", "web.shop.svc", "A 10.96.0.20"},                                                         // 2.3.1
		{"AAAA", "web.shop.svc", "no records"},                                                        // NW-09: not NXDOMAIN
		{"A", "dual.shop.svc", "A 10.96.0.22"},                                                        //
		{"AAAA", "dual.shop.svc", "AAAA fd00:96::22"},                                                 //
		{"SRV", "_http._tcp.web.shop.svc", "SRV 0 100 80 web.shop.svc.cluster.local. + A 10.96.0.20"}, // 2.3.2
		{"A", "_http._tcp.web.shop.svc", "no records"},
		{"SRV", "_tcp.web.shop.svc", "no records"},
		{"SRV", "_http._udp.web.shop.svc", "no such name"},
		{"SRV", "_tcp.plain.shop.svc", "no such name"}, // an unnamed port has no name
		{"SRV", "__._tcp.plain.shop.svc", "no such name"},
		{"SRV", "_._tcp.plain.shop.svc", "no such name"},
		{"A", "db.shop.svc", "A 10.244.0.5, A 10.244.0.6, A 10.244.0.8"}, // 2.4.1: db-2 is not ready
		{"AAAA", "db.shop.svc", "AAAA fd00:244::5"},
		{"A", "db-1.db.shop.svc", "A 10.244.0.6"},
		{"AAAA", "db-1.db.shop.svc", "no records"},
		{"A", "db-2.db.shop.svc", "no such name"},
		{"A", "10-244-0-8.db.shop.svc", "A 10.244.0.8"},
		{"A", "db-0.web.shop.svc", "no such name"}, // not headless
		{"SRV", "_http._tcp.db.shop.svc", "SRV 0 100 8080 10-244-0-8.db.shop.svc.cluster.local., SRV 0 100 8080 db-0.db.shop.svc.cluster.local., " +
			"SRV 0 100 8080 db-1.db.shop.svc.cluster.local. + A 10.244.0.5, A 10.244.0.6, A 10.244.0.8, AAAA fd00:244::5"}, // 2.4.2
		{"A", "idle.shop.svc", "no records"},
		{"CNAME", "outside.shop.svc", "CNAME www.example.org."}, // 2.5
		{"A", "a.outside.shop.svc", "no such name"},
		{"A", "10-1-2-3.shop.pod", "A 10.1.2.3"}, // 2.6
		{"AAAA", "fd00--1.shop.pod", "AAAA fd00::1"},
		{"A", "10-1-2-3.nowhere.pod", "no such name"},
		{"A", "web.shop.pod", "no such name"},
		{"A", "shop.svc", "no records"}, {"A", "empty.svc", "no records"}, {"A", "nowhere.svc", "no such name"},
		{"A", "svc", "no records"}, {"A", "pod", "no records"}, {"A", "node", "no such name"},
		{"A", "none.shop.svc", "no such name"}, {"A", "a.b.c.d.shop.svc", "no such name"},
		{"NS", "", "NS ns.dns.cluster.local. + A 10.96.0.10, AAAA fd00:96::a"},
		{"A", "ns.dns", "A 10.96.0.10"}, {"A", "dns", "no records"}, {"A", "x.dns", "no such name"},
	} {
		name := strings.TrimPrefix(c.name+".cluster.local.", ".")
		got := z.lookup(newQuestion(name, dns.StringToType[c.kind]))
		require.Equal(t, c.want, text(got), "%s %s", c.kind, c.name)
	}
}

// TestSpecificationReverse asks for the names of addresses.
func TestSpecificationReverse(t *testing.T) {
	z := shop(t)
	for address, want := range map[string]string{
		"10.96.0.20":  "PTR web.shop.svc.cluster.local.",
		"fd00:96::22": "PTR dual.shop.svc.cluster.local.",
		"10.244.0.5":  "PTR db-0.db.shop.svc.cluster.local.",
		"fd00:244::5": "PTR db-0.db.shop.svc.cluster.local.",
		"10.244.0.7":  "unknown", // not ready
		"10.244.0.8":  "unknown", // has no host name
		"192.0.2.1":   "unknown",
	} {
		name, err := dns.ReverseAddr(address)
		require.NoError(t, err)
		got, known := z.reverse(newQuestion(name, dns.TypePTR))
		if !known {
			require.Equal(t, want, "unknown", address)
			continue
		}
		require.Equal(t, want, text(got), address)
	}
}

// TestOwnerKeepsItsSpelling is for resolvers that mix upper and lower case to recognise their own questions.
func TestOwnerKeepsItsSpelling(t *testing.T) {
	got := shop(t).lookup(newQuestion("wEb.Shop.SVC.cluster.LOCAL.", dns.TypeA))
	require.Len(t, got.records, 1)
	require.Equal(t, "wEb.Shop.SVC.cluster.LOCAL.", got.records[0].Header().Name)
}

func text(a answer) string {
	switch {
	case !a.exists:
		return "no such name"
	case len(a.records) == 0:
		return "no records"
	}
	out := sorted(a.records)
	if len(a.extra) > 0 {
		out += " + " + sorted(a.extra)
	}
	return out
}

func sorted(records []dns.RR) string {
	texts := make([]string, len(records))
	for i, r := range records {
		texts[i] = fmt.Sprint(dns.Type(r.Header().Rrtype), " ", strings.TrimPrefix(r.String(), r.Header().String()))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
