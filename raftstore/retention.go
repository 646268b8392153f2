package raftstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// retention compacts history by age: the leader proposes, now and then, to compact at the revision that
// was the newest Config.HistoryRetention ago.
//
// The replicated state does not know when a revision was made. Every member keeps marks of its own (this
// revision was my newest so long ago), so that whoever leads next can go on; marks.go keeps them across restarts.
// A follower that lags marks too low a revision, and time in which a member does not run does not count: history is then
// kept longer, never shorter. Whatever fails is tried again at the next mark, with what is due then (KV-18).
type retention struct {
	keep  time.Duration
	marks []mark // oldest first, revisions ascending; about marksPerRetention of them

	mu   sync.Mutex // guards last
	last Compaction
}

// mark says that a revision was the newest at a time.
type mark struct {
	at       time.Time
	revision int64
}

// Compaction is what became of the compactions by age that this member proposed.
type Compaction struct {
	Revision int64     `json:"revision"`        // of the last one that succeeded; 0 if none did
	At       time.Time `json:"at,omitzero"`     // when that was
	Err      string    `json:"error,omitempty"` // why the last one failed, if one did since
}

// marksPerRetention says how exact the age of history is: one part in so many.
const marksPerRetention = 20

const (
	minMarkInterval = time.Second
	maxMarkInterval = 5 * time.Minute
)

func (r *retention) interval() time.Duration {
	return min(max(r.keep/marksPerRetention, minMarkInterval), maxMarkInterval)
}

// note marks the newest revision.
func (r *retention) note(now time.Time, revision int64) {
	if n := len(r.marks); n == 0 || r.marks[n-1].revision < revision {
		r.marks = append(r.marks, mark{now, revision})
	}
}

// due returns the newest revision that was the newest long enough ago, 0 if there is none. Marks before
// that one are of no use any more.
func (r *retention) due(now time.Time) int64 {
	old := 0
	for old < len(r.marks) && now.Sub(r.marks[old].at) >= r.keep {
		old++
	}
	if old == 0 {
		return 0
	}
	r.marks = r.marks[old-1:]
	return r.marks[0].revision
}

func (r *retention) record(now time.Time, revision int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.last.Err = err.Error()
		return
	}
	r.last = Compaction{Revision: revision, At: now}
}

func (r *retention) status() Compaction {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// keepHistory is the goroutine of retention.
func (m *Member) keepHistory(ctx context.Context) {
	r := &m.retention
	if r.keep <= 0 {
		return // all history is kept
	}
	if err := r.load(m.cfg.Dir, m.lessor.clock.now(), m.store.Revision()); err != nil {
		m.cfg.Log.Warn("how old history is cannot be read, its age is counted anew", "err", err)
	}
	r.note(m.lessor.clock.now(), m.store.Revision())
	defer m.saveMarks()
	for pause(ctx, r.interval()) {
		r.note(m.lessor.clock.now(), m.store.Revision())
		if due := r.due(m.lessor.clock.now()); due > 0 && m.raft.State() == raft.Leader {
			m.compactHistory(ctx, due)
		}
		m.saveMarks()
	}
}

func (m *Member) saveMarks() {
	if err := m.retention.save(m.cfg.Dir, m.lessor.clock.now()); err != nil {
		m.cfg.Log.Warn("how old history is cannot be written down", "err", err)
	}
}

func (m *Member) compactHistory(ctx context.Context, revision int64) {
	stats, err := m.store.Stats()
	if err != nil || stats.Compacted >= revision {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
	defer cancel()
	data, err := encodeProposal(Origin{User: "system:store", UserAgent: "kontiki retention"}, mvcc.Command{Compact: revision})
	if err == nil {
		_, err = m.proposer.propose(ctx, data)
	}
	if errors.Is(err, mvcc.ErrCompacted) {
		err = nil // somebody was faster
	}
	m.retention.record(time.Now(), revision, err)
	if err != nil {
		m.cfg.Log.Warn("old history could not be compacted, will try again", "revision", revision, "err", err)
		return
	}
	m.cfg.Log.Debug("old history compacted", "revision", revision)
}
