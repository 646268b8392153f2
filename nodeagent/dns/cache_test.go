package dns

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// TestAnswersAge shows that an answer is given with what is left of its time to live, and not after it.
func TestAnswersAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, key := newAges(10), cacheKey{name: "a.", kind: dns.TypeA}
		a.put(key, &dns.Msg{Answer: []dns.RR{record(t, "a. 20 IN A 192.0.2.1")}}, 20*time.Second)
		time.Sleep(15 * time.Second)
		require.EqualValues(t, 5, a.get(key).Answer[0].Header().Ttl)
		time.Sleep(5 * time.Second)
		require.Nil(t, a.get(key))
	})
}

func TestAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAges(100)
		for i := range 1000 {
			a.put(cacheKey{name: fmt.Sprint(i)}, &dns.Msg{}, time.Hour)
			require.LessOrEqual(t, len(a.entries), 100)
		}
		require.NotNil(t, a.get(cacheKey{name: "999"}), "the newest is there")
	})
}

// TestLife follows RFC 2308: what is not there is kept as long as the record of authority allows, if it does.
func TestLife(t *testing.T) {
	soa := record(t, "a. 3600 IN SOA b. c. 1 2 3 4 2")
	for name, c := range map[string]struct {
		reply dns.Msg
		want  time.Duration
	}{
		"least TTL":      {dns.Msg{Answer: []dns.RR{record(t, "a. 20 IN A 192.0.2.1"), record(t, "a. 7 IN A 192.0.2.2")}}, 7 * time.Second},
		"long TTL":       {dns.Msg{Answer: []dns.RR{record(t, "a. 86400 IN A 192.0.2.1")}}, maxAge},
		"no records":     {dns.Msg{Ns: []dns.RR{soa}}, 2 * time.Second},
		"without a SOA":  {dns.Msg{}, 0},
		"no such name":   {dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}, Ns: []dns.RR{record(t, "a. 99 IN SOA b. c. 1 2 3 4 99")}}, maxNegativeAge},
		"an alias to it": {dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}, Answer: []dns.RR{record(t, "a. 99 IN CNAME b.")}, Ns: []dns.RR{soa}}, 2 * time.Second},
		"not to be kept": {dns.Msg{Answer: []dns.RR{record(t, "a. 0 IN A 192.0.2.1")}}, 0},
	} {
		require.Equal(t, c.want, lifeOf(&c.reply), name)
	}
}

// FuzzNames has names with any bytes: no panic, and what is found goes by the name that was asked.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"web.shop.svc", "_http._tcp.db.shop.svc", "1-2-3-4.shop.pod", "4.3.2.1.in-addr.arpa", `\000.svc`, "..", "--.shop.pod"} {
		f.Add(name, dns.TypeSRV)
	}
	f.Fuzz(func(t *testing.T, name string, kind uint16) {
		z := shop(t)
		for _, q := range []question{newQuestion(name, kind), newQuestion(name+".cluster.local.", kind)} {
			if _, err := dns.PackDomainName(q.name, make([]byte, 300), 0, nil, false); err != nil || !dns.IsFqdn(q.name) {
				continue // such a name never arrives
			}
			a, _ := z.reverse(q)
			if z.holds(q.name) {
				a = z.lookup(q)
			}
			for _, r := range a.records {
				require.Equal(t, q.owner, r.Header().Name)
			}
		}
	})
}
