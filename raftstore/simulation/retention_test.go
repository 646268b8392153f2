package simulation

import (
	"context"
	"time"
)

// In one of three seeds the members compact by age (raftstore/retention.go), and nobody by hand. What a member's history
// has lost must have been the newest for long enough, whatever its clock shows; and after all faults compaction goes on
// (KV-18).

// keptHistory is how long history is kept in such seeds.
const keptHistory = 10 * time.Second

// Bounds of when a revision is compacted, after it was the newest for keptHistory by a clock that drifts.
const (
	tellTolerance = 2 * time.Second // a revision may be told that much later than it is made
	// compactTolerance: a revision is marked, and what is due looked for, once a second; an attempt may fail.
	compactTolerance = 10 * time.Second
)

func drawRetention(seed uint64) time.Duration {
	return pick(newDice(seed, "retention"), 0, 0, keptHistory)
}

// watchCompaction looks at what members have compacted until the context ends.
func (s *simulation) watchCompaction(ctx context.Context) {
	for ctx.Err() == nil {
		s.lookAtCompaction()
		time.Sleep(500 * time.Millisecond)
	}
}

// lookAtCompaction returns the highest compaction of any member, after a look at whether it came too early.
func (s *simulation) lookAtCompaction() (compacted int64) {
	for _, p := range s.cluster.processes() {
		if st, err := p.member.Status(); err == nil {
			compacted = max(compacted, st.Store.Compacted)
		}
	}
	if age, known := s.history.noteExpiry(compacted); known {
		s.count("compactions by age")
		if least := time.Duration(float64(keptHistory)*(1-maxDrift)) - tellTolerance; age < least {
			s.lessons.add("revision %d is compacted and was told only %v ago; history is kept for %v", compacted, age, keptHistory)
		}
	}
	return compacted
}

// noteExpiry notes a compaction by age, and returns how long ago its revision was told. It is false for one that
// is noted already.
func (h *history) noteExpiry(rev int64) (age time.Duration, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rev <= h.compacted {
		return 0, false
	}
	h.compacted = rev
	at, known := h.toldAt[rev]
	return time.Since(at), known
}

// waitCompaction waits, after the last fault, until the newest revision is compacted, for nothing is written any more.
func (s *simulation) waitCompaction() {
	begin := time.Now()
	most := time.Duration(float64(keptHistory)*(1+2*maxDrift)) + compactTolerance
	for s.lookAtCompaction() < s.final {
		if time.Since(begin) > most {
			s.lessons.add("revision %d is not compacted %v after the last write: history is kept for %v", s.final, time.Since(begin), keptHistory)
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}
