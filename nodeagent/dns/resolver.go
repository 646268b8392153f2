package dns

import (
	"context"
	"strings"

	"github.com/miekg/dns"
)

// maxChain is how many CNAMEs a name may go through.
const maxChain = 8

// resolver answers queries: about the zone by itself, about the rest by asking others.
type resolver struct {
	zone    *zone
	forward *cachedForwarder
}

// resolve answers one query. It always returns a message that can be sent.
func (r *resolver) resolve(ctx context.Context, query *dns.Msg) *dns.Msg {
	reply := new(dns.Msg)
	reply.SetReply(query)
	reply.RecursionAvailable = true
	switch {
	case query.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
		return reply
	case len(query.Question) != 1:
		reply.Rcode = dns.RcodeFormatError
		return reply
	case query.Question[0].Qclass != dns.ClassINET:
		reply.Rcode = dns.RcodeRefused
		return reply
	}
	q := newQuestion(query.Question[0].Name, query.Question[0].Qtype)
	if q.kind == dns.TypeANY { // RFC 8482: the least that is an answer
		reply.Answer = []dns.RR{&dns.HINFO{Hdr: q.header(dns.TypeHINFO), Cpu: "RFC8482"}}
		return reply
	}
	r.answer(ctx, query, reply, q, 0)
	return reply
}

// answer adds what is known about q to the reply, and follows CNAMEs: depth is how many it came through.
func (r *resolver) answer(ctx context.Context, query, reply *dns.Msg, q question, depth int) {
	ours := r.zone.holds(q.name)
	isReverse := strings.HasSuffix(q.name, ".arpa.")
	switch {
	case depth > maxChain:
		reply.Rcode = dns.RcodeServerFailure
		return
	case (ours || isReverse) && !r.zone.cluster.ready():
		reply.Rcode = dns.RcodeServerFailure
		return
	case ours:
		reply.Authoritative = depth == 0
		r.addOwn(ctx, query, reply, q, r.zone.lookup(q), depth)
		return
	}
	if isReverse {
		if a, known := r.zone.reverse(q); known {
			reply.Authoritative = true
			r.addOwn(ctx, query, reply, q, a, depth)
			return
		}
	}
	r.addForwarded(ctx, query, reply, q)
}

func (r *resolver) addOwn(ctx context.Context, query, reply *dns.Msg, q question, a answer, depth int) {
	reply.Answer = append(reply.Answer, a.records...)
	reply.Extra = append(reply.Extra, a.extra...)
	switch {
	case a.next != "" && q.kind != dns.TypeCNAME:
		r.answer(ctx, query, reply, newQuestion(a.next, q.kind), depth+1)
		return
	case !a.exists:
		reply.Rcode = dns.RcodeNameError
	}
	if len(a.records) == 0 {
		reply.Ns = append(reply.Ns, r.zone.soa())
	}
}

func (r *resolver) addForwarded(ctx context.Context, query, reply *dns.Msg, q question) {
	other, err := r.forward.ask(ctx, q, query)
	if err != nil {
		reply.Rcode = dns.RcodeServerFailure
		return
	}
	reply.Rcode = other.Rcode
	reply.AuthenticatedData = other.AuthenticatedData
	reply.Answer = append(reply.Answer, other.Answer...)
	reply.Ns = append(reply.Ns, other.Ns...)
	for _, record := range other.Extra {
		if record.Header().Rrtype != dns.TypeOPT { // between two neighbours only (RFC 6891 section 6.1.1)
			reply.Extra = append(reply.Extra, record)
		}
	}
}
