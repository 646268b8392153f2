package raftstore

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// Raft counts entries when it decides about snapshots and about what stays in the log behind one. Entries of ours
// have between a few and some hundred thousand bytes, so they are counted here as well: a snapshot is
// taken when half of Config.LogBytes was applied since the last one, and at most about the other half stays behind it.
//
// A snapshot is a copy of the store. If that is larger than half of LogBytes, the next snapshot waits until as many bytes
// were applied as the store had at the last one: so copies never take more writing than the log itself.
//
// So the log has at most LogBytes/2, and LogBytes/2 or the store at the last snapshot, whichever is more, and what comes in
// logBytesInterval. A restart changes nothing: the next snapshot may come earlier for it, not later.

const logBytesInterval = time.Second

// boundLog is a goroutine.
func (m *Member) boundLog(ctx context.Context) {
	bytes := min(0, m.cfg.LogBytes/2-m.log.logBytes()) // applied when the last snapshot was taken; less than 0: before this start
	size := m.storeBytes()
	for pause(ctx, logBytesInterval) {
		grown := m.counters.applied.bytes.Load() - bytes
		if grown < max(m.cfg.LogBytes/2, size) {
			continue
		}
		bytes, size = bytes+grown, m.storeBytes()
		m.keepBehind(grown)
		if err := m.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
			m.cfg.Log.Warn("cannot take a snapshot to make the raft log shorter", "err", err)
		}
	}
}

// storeBytes is about how large a snapshot is.
func (m *Member) storeBytes() int64 {
	st, err := m.store.Stats()
	if err != nil {
		return 0 // it is closed
	}
	return st.InUseBytes
}

// keepBehind sets how many entries stay in the log behind a snapshot, given the bytes of those after the last one.
func (m *Member) keepBehind(bytes int64) {
	first := uint64(1)
	if s, err := m.newestSnapshot(); err == nil && s != nil {
		first = s.Index
	}
	entries := max(m.raft.AppliedIndex(), first+1) - first
	perEntry := max(uint64(bytes)/entries, 1)
	trailing := min(m.cfg.SnapshotEntries/2, max(uint64(m.cfg.LogBytes)/2/perEntry, 1))
	if err := m.reloadRaft(func(rc *raft.ReloadableConfig) { rc.TrailingLogs = trailing }); err != nil {
		m.cfg.Log.Warn("cannot set the number of trailing entries", "err", err)
	}
}
