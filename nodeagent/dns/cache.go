package dns

import (
	"context"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/singleflight"
)

const (
	// maxForwards bounds the queries that wait for upstream resolvers at once. More get SERVFAIL at once, so that a
	// resolver that is away holds a bounded number of goroutines.
	maxForwards = 1000
	// maxCached bounds the answers that are kept; when there are more, some that have expired go, else any.
	maxCached = 10_000
	// maxAge bounds how long an answer is kept, whatever its TTL says.
	maxAge = 30 * time.Second
	// maxNegativeAge bounds it for "no such name" and "no records".
	maxNegativeAge = 5 * time.Second
)

// cachedForwarder forwards queries, one at a time for the same name, and keeps the answers for their time to live.
type cachedForwarder struct {
	forward *forwarder
	flights singleflight.Group
	answers *ages
	slots   chan struct{} // one is taken by each query that waits
}

func newCachedForwarder(upstreams []string) *cachedForwarder {
	return &cachedForwarder{
		forward: &forwarder{upstreams: upstreams}, answers: newAges(maxCached), slots: make(chan struct{}, maxForwards),
	}
}

// ask returns the answer of others to q. query is where it comes from: its DNSSEC bits are passed on. ctx is the
// server's, for others may wait for the same answer. The answer is the caller's own.
func (c *cachedForwarder) ask(ctx context.Context, q question, query *dns.Msg) (*dns.Msg, error) {
	key := cacheKey{name: q.name, kind: q.kind, checkingDisabled: query.CheckingDisabled}
	if opt := query.IsEdns0(); opt != nil {
		key.dnssec = opt.Do()
	}
	if reply := c.answers.get(key); reply != nil {
		return withOwner(reply, q), nil
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return nil, errBusy
	}
	shared, err, _ := c.flights.Do(key.String(), func() (any, error) {
		reply, err := c.forward.ask(ctx, key.query())
		if err == nil {
			c.answers.put(key, reply, lifeOf(reply))
		}
		return reply, err
	})
	if err != nil {
		return nil, err
	}
	return withOwner(shared.(*dns.Msg).Copy(), q), nil
}

// withOwner spells the asked name as it was asked.
func withOwner(reply *dns.Msg, q question) *dns.Msg {
	for _, record := range reply.Answer {
		if header := record.Header(); dns.CanonicalName(header.Name) == q.name {
			header.Name = q.owner
		}
	}
	return reply
}

// cacheKey is what makes two forwarded queries the same.
type cacheKey struct {
	name                     string
	kind                     uint16
	dnssec, checkingDisabled bool
}

func (k cacheKey) String() string {
	flags := ""
	if k.dnssec {
		flags += " do"
	}
	if k.checkingDisabled {
		flags += " cd"
	}
	return k.name + " " + dns.Type(k.kind).String() + flags
}

func (k cacheKey) query() *dns.Msg {
	query := new(dns.Msg)
	query.SetQuestion(k.name, k.kind)
	query.SetEdns0(udpSize, k.dnssec)
	query.CheckingDisabled = k.checkingDisabled
	return query
}

// lifeOf is how long an answer may be kept: the least TTL in it and, where it has no records of the asked name, what its
// record of authority allows (RFC 2308 section 5). Without one it is not kept.
func lifeOf(reply *dns.Msg) time.Duration {
	life := maxAge
	for _, section := range [][]dns.RR{reply.Answer, reply.Ns} {
		for _, record := range section {
			life = min(life, time.Duration(record.Header().Ttl)*time.Second)
		}
	}
	if len(reply.Answer) > 0 && reply.Rcode == dns.RcodeSuccess {
		return life
	}
	for _, record := range reply.Ns {
		if soa, ok := record.(*dns.SOA); ok {
			return min(life, maxNegativeAge, time.Duration(soa.Minttl)*time.Second)
		}
	}
	return 0
}
