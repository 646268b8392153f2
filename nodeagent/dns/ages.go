package dns

import (
	"sync"
	"time"

	"github.com/miekg/dns"
)

// ages keeps answers until they are too old. It is safe for concurrent use.
type ages struct {
	most int

	mu      sync.Mutex // guards entries
	entries map[cacheKey]aged
}

// aged is an answer that may be given from since until until.
type aged struct {
	reply        *dns.Msg // never changed
	since, until time.Time
}

func newAges(most int) *ages { return &ages{most: most, entries: map[cacheKey]aged{}} }

// get returns a copy of an answer whose TTLs are less by its age, nil if there is none.
func (a *ages) get(key cacheKey) *dns.Msg {
	now := time.Now()
	a.mu.Lock()
	entry, ok := a.entries[key]
	a.mu.Unlock()
	if !ok || !now.Before(entry.until) {
		return nil
	}
	reply, age := entry.reply.Copy(), uint32(now.Sub(entry.since)/time.Second)
	for _, section := range [][]dns.RR{reply.Answer, reply.Ns, reply.Extra} {
		for _, record := range section {
			if header := record.Header(); header.Rrtype != dns.TypeOPT { // whose TTL holds flags
				header.Ttl -= min(header.Ttl, age)
			}
		}
	}
	return reply
}

// put keeps an answer for a time; not at all for none.
func (a *ages) put(key cacheKey, reply *dns.Msg, life time.Duration) {
	if life <= 0 {
		return
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) >= a.most {
		a.makeRoom(now)
	}
	a.entries[key] = aged{reply: reply.Copy(), since: now, until: now.Add(life)}
}

// makeRoom drops what is too old and, if nothing is, a tenth of the rest, so that a full cache is not searched for every
// answer. Callers hold mu.
func (a *ages) makeRoom(now time.Time) {
	for key, entry := range a.entries {
		if !now.Before(entry.until) {
			delete(a.entries, key)
		}
	}
	for key := range a.entries {
		if len(a.entries) < a.most-a.most/10 {
			return
		}
		delete(a.entries, key)
	}
}
