package dns

import (
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
)

// ttlSeconds is how long others may keep an answer about the zone, that a name is not there included (NW-09).
const ttlSeconds = 5

// specVersion is the version of the Kubernetes DNS specification that the zone follows; it answers it itself.
const specVersion = "1.1.0"

// answer is what is known about one name and type.
type answer struct {
	records []dns.RR
	extra   []dns.RR // addresses of what records name
	exists  bool     // the name is there, though maybe without records of the asked type
	next    string   // the name to go on with, of a CNAME in records
}

// noSuchName and noRecords are the two ways of having nothing to say.
var (
	noSuchName = answer{}
	noRecords  = answer{exists: true}
)

// zone is the names below the cluster's domain. Its methods read informers only, and are safe for concurrent use.
type zone struct {
	domain  string // fully qualified, lower case: "cluster.local."
	cluster cluster
	server  []string // addresses of the DNS server, for NS
}

// holds says whether name (lower case) is the zone's to answer.
func (z *zone) holds(name string) bool { return dns.IsSubDomain(z.domain, name) }

// lookup answers a question about a name of the zone.
//
// The names by number of labels below the domain, "x" standing for any:
//
//	(none)               SOA, NS              ns.dns             where this server is
//	dns-version          TXT                  svc, pod           exist, as do x.svc and x.pod where x is a namespace
//	service.ns.svc       A, AAAA, CNAME       10-1-2-3.ns.pod    A, AAAA
//	endpoint.service.ns.svc                   A, AAAA
//	_tcp.service.ns.svc                       exists
//	_port._tcp.service.ns.svc                 SRV
func (z *zone) lookup(q question) answer {
	labels := dns.SplitDomainName(strings.TrimSuffix(q.name, z.domain))
	switch n := len(labels); {
	case n == 0:
		return z.apex(q)
	case n == 1 && labels[0] == "dns-version":
		return q.only(dns.TypeTXT, &dns.TXT{Hdr: q.header(dns.TypeTXT), Txt: []string{specVersion}})
	case n == 1 && labels[0] == "dns":
		return noRecords
	case n == 2 && labels[0] == "ns" && labels[1] == "dns":
		return q.addresses(z.server)
	case labels[n-1] == "svc":
		return z.below(labels[:n-1], q, z.service)
	case labels[n-1] == "pod":
		return z.below(labels[:n-1], q, z.pod)
	}
	return noSuchName
}

// below answers names below "svc" or "pod": the namespaces themselves, and with lookup what they hold.
func (z *zone) below(labels []string, q question, lookup func(labels []string, namespace string, q question) answer) answer {
	if len(labels) == 0 {
		return noRecords
	}
	namespace := labels[len(labels)-1]
	if len(labels) > 1 {
		return lookup(labels[:len(labels)-1], namespace, q)
	}
	if z.cluster.hasNamespace(namespace) {
		return noRecords
	}
	return noSuchName
}

// apex answers for the domain itself.
func (z *zone) apex(q question) answer {
	switch q.kind {
	case dns.TypeSOA:
		return answer{exists: true, records: []dns.RR{z.soa()}}
	case dns.TypeNS:
		ns := question{name: "ns.dns." + z.domain, owner: "ns.dns." + z.domain}
		return answer{
			exists:  true,
			records: []dns.RR{&dns.NS{Hdr: q.header(dns.TypeNS), Ns: ns.name}},
			extra:   ns.bothFamilies(z.server),
		}
	}
	return noRecords
}

// soa is the zone's record of authority. In a negative answer it says how long that may be kept (RFC 2308).
func (z *zone) soa() dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: z.domain, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttlSeconds},
		Ns:  "ns.dns." + z.domain, Mbox: "hostmaster." + z.domain,
		Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttlSeconds,
	}
}

// isHeadless says whether a Service's name stands for its endpoints, not for an address of its own.
func isHeadless(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone }
