package rejoin

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"
)

// ErrGap: entries are missing between the latest snapshot and the log. The snapshot was removed, or
// is not the one that belongs to this log.
var ErrGap = errors.New("rejoin: entries are missing between the snapshot and the log")

// Guard is the log store to give to raft instead of the one it wraps, while Run passes raft's incoming
// messages. See the package's documentation.
type Guard struct {
	raft.LogStore
	keepFrom func() uint64
	log      *slog.Logger

	truncated bool // the log ends before the entry that raft takes for its last one; only raft's main loop uses it
	closing   sync.Once
	closed    chan struct{} // closed by Close

	mu         sync.Mutex // guards the fields below; nothing else is locked while it is held
	installed  position   // last entry of the latest snapshot that raft has restored or got installed
	installing uint64     // last index of the snapshot that raft is installing, 0 for none
}

var _ raft.MonotonicLogStore = (*Guard)(nil)

// position is an entry's place in the history of all logs.
type position struct{ index, term uint64 }

// New wraps a log store. It makes the log fit the latest snapshot, which a crash may have prevented, and
// must therefore come before raft.NewRaft. Compaction by raft has to leave at least one entry (TrailingLogs); keepFrom is the
// first entry that it has to leave, 0 for any.
func New(logs raft.LogStore, snapshots raft.SnapshotStore, keepFrom func() uint64, log *slog.Logger) (*Guard, error) {
	latest, err := snapshots.List()
	if err != nil {
		return nil, fmt.Errorf("rejoin: list snapshots: %w", err)
	}
	g := &Guard{LogStore: logs, keepFrom: keepFrom, log: log, closed: make(chan struct{})}
	if len(latest) > 0 {
		g.installed = position{latest[0].Index, latest[0].Term}
	}
	return g, g.fit()
}

// fit deletes the log if it does not continue the snapshot.
func (g *Guard) fit() error {
	snapshot := g.installed
	first, last, err := g.indexes()
	if err != nil || snapshot.index == 0 || last == 0 {
		return err
	}
	if first > snapshot.index+1 {
		return fmt.Errorf("%w: the snapshot ends at %d, the log begins at %d", ErrGap, snapshot.index, first)
	}
	if first == snapshot.index+1 {
		return nil
	}
	same, err := g.logHas(snapshot)
	if err != nil || same {
		return err
	}
	return g.LogStore.DeleteRange(first, last)
}

func (g *Guard) indexes() (first, last uint64, err error) {
	if first, err = g.LogStore.FirstIndex(); err != nil {
		return 0, 0, err
	}
	last, err = g.LogStore.LastIndex()
	return first, last, err
}

// logHas says whether an entry is in the log.
func (g *Guard) logHas(p position) (bool, error) {
	var entry raft.Log
	err := g.LogStore.GetLog(p.index, &entry)
	if errors.Is(err, raft.ErrLogNotFound) {
		return false, nil
	}
	return err == nil && entry.Term == p.term, err
}

// has says whether the member has all entries up to a committed one. What it has compacted is part of a
// snapshot of its own.
func (g *Guard) has(p position) (bool, error) {
	g.mu.Lock()
	installed := g.installed
	g.mu.Unlock()
	if p.index <= installed.index {
		return true, nil
	}
	first, _, err := g.indexes()
	if err != nil || first > p.index {
		return err == nil, err
	}
	return g.logHas(p)
}

// IsMonotonic implements raft.MonotonicLogStore: raft shall delete the whole log after it installed a
// snapshot. DeleteRange knows what to keep.
func (g *Guard) IsMonotonic() bool { return true }

// DeleteRange implements raft.LogStore. After a snapshot was installed, it keeps the entries that follow
// it; when raft compacts the log behind a snapshot of the member's own, the last entry of that. A range at the end that
// nobody compacts is a conflict, and StoreLogs comes next.
func (g *Guard) DeleteRange(min, max uint64) error {
	g.mu.Lock()
	installing := g.installing
	g.mu.Unlock()
	first, last, err := g.indexes()
	if err != nil {
		return err
	}
	switch {
	case installing > 0 && min == first && max == last && max > installing:
		max = installing
	case installing == 0 && min == first && max < last: // compaction: not the snapshot's last entry, nor what somebody needs
		max--
		if keep := g.keepFrom(); keep > 0 && keep <= max {
			max = keep - 1
		}
		if max < min {
			return nil
		}
	case installing == 0 && max == last:
		err := g.LogStore.DeleteRange(min, max)
		g.truncated = g.truncated || err == nil
		return err
	}
	return g.LogStore.DeleteRange(min, max)
}
