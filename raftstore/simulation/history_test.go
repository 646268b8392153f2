package simulation

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"kontiki/mvcc"
)

// history is what happened, revision by revision, as the members' watches tell. All tell the same.
type history struct {
	lessons *report

	mu        sync.Mutex // guards everything below
	revisions map[int64][]mvcc.Event
	teller    map[int64]string // who told first
	toldAt    map[int64]time.Time
	seen      map[string]int64 // by member: up to where it told
	compacted int64            // highest revision that anybody asked to compact
}

func newHistory(r *report) *history {
	return &history{lessons: r, revisions: map[int64][]mvcc.Event{}, teller: map[int64]string{}, toldAt: map[int64]time.Time{}, seen: map[string]int64{}}
}

// tell adds what a process delivered.
func (h *history) tell(p *process, b mvcc.WatchBatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for events := b.Events; len(events) > 0; {
		rev := events[0].KV.ModRevision
		n := 1
		for n < len(events) && events[n].KV.ModRevision == rev {
			n++
		}
		if first, known := h.revisions[rev]; !known {
			h.revisions[rev], h.teller[rev], h.toldAt[rev] = events[:n:n], p.String(), time.Now()
		} else if err := sameEvents(first, events[:n]); err != nil {
			h.lessons.add("revision %d: %s and %v differ: %v", rev, h.teller[rev], p, err)
		}
		events = events[n:]
	}
	h.seen[p.name] = b.Revision
}

func (h *history) seenBy(name string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[name]
}

// known is the newest revision that is told.
func (h *history) known() (rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, seen := range h.seen {
		rev = max(rev, seen)
	}
	return rev
}

func (h *history) noteCompaction(rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.compacted = max(h.compacted, rev)
}

func sameEvents(want, got []mvcc.Event) error {
	for i := range max(len(want), len(got)) {
		if i >= len(want) {
			return fmt.Errorf("unexpected %v", showEvent(got[i]))
		}
		if i >= len(got) {
			return fmt.Errorf("missing %v", showEvent(want[i]))
		}
		if want[i].Type != got[i].Type || !sameKV(want[i].KV, got[i].KV) {
			return fmt.Errorf("%v instead of %v", showEvent(got[i]), showEvent(want[i]))
		}
	}
	return nil
}

func sameKV(a, b mvcc.KeyValue) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.CreateRevision == b.CreateRevision &&
		a.ModRevision == b.ModRevision && a.Version == b.Version && a.Lease == b.Lease
}

func sameKVs(want, got []mvcc.KeyValue) error {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			return fmt.Errorf("unexpected %v", showKV(got[i]))
		case i >= len(got):
			return fmt.Errorf("missing %v", showKV(want[i]))
		case !sameKV(want[i], got[i]):
			return fmt.Errorf("%v instead of %v", showKV(got[i]), showKV(want[i]))
		}
	}
	return nil
}

func showKV(kv mvcc.KeyValue) string {
	return fmt.Sprintf("%s=%s(create %d mod %d version %d lease %d)", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease)
}

func showEvent(e mvcc.Event) string {
	return [...]string{"put ", "delete "}[e.Type] + showKV(e.KV)
}
