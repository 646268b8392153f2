package faults

import (
	"slices"
	"sync"
	"time"
)

// outcome is what a writer was told about a write.
type outcome int

const (
	unknown      outcome = iota // an error: it may have happened, and may yet
	acknowledged                // it happened
	refused                     // a transaction whose compare did not hold: it did not happen
)

// write is one write as its writer saw it.
type write struct {
	key, value string // the value is unique
	seen       int64  // the highest revision that anybody had been told of when it began
	outcome    outcome
	revision   int64 // if acknowledged
}

// read is one linearizable read of a key that was answered.
type read struct {
	key      string
	seen     int64 // as in write
	revision int64 // of the store, in the answer's header
	modified int64 // the key's; 0 if there was none
}

// history is what all writers saw.
type history struct {
	mu       sync.Mutex // guards everything below
	seen     int64      // the highest revision that anybody was told of
	writes   []write
	reads    []read
	failed   int // reads without an answer
	lastAck  time.Time
	fault    string                     // the last one that began
	gaps     map[string][]time.Duration // between acknowledgements, those of at least gap, by the fault
	ackBegan [3]time.Time               // per member, when the last write began that it acknowledged
}

// gap is how long there is no acknowledgement in a window that the report calls unavailable.
const gap = 250 * time.Millisecond

func newHistory() *history { return &history{gaps: map[string][]time.Duration{}} }

// begins says that a fault begins.
func (h *history) begins(fault string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
}

// soFar is the highest revision that anybody was told of.
func (h *history) soFar() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

func (h *history) wrote(member int, began time.Time, w write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, w)
	if w.outcome != acknowledged {
		return
	}
	h.seen = max(h.seen, w.revision)
	h.ackBegan[member] = began
	now := time.Now()
	if d := now.Sub(h.lastAck); d >= gap && !h.lastAck.IsZero() {
		h.gaps[h.fault] = append(h.gaps[h.fault], d)
	}
	h.lastAck = now
}

// hasRead records a read; nil is one that failed.
func (h *history) hasRead(r *read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r == nil {
		h.failed++
		return
	}
	h.seen = max(h.seen, r.revision)
	h.reads = append(h.reads, *r)
}

// servesSince says whether every member has acknowledged a write that began after t.
func (h *history) servesSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !slices.ContainsFunc(h.ackBegan[:], func(began time.Time) bool { return !began.After(t) })
}
