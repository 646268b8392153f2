package raftstore

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// Meters count what happened since the member was opened; metrics.go names the numbers among them. They take no
// locks: they are on the path of every write.

// logMeter counts appends to the raft log: entries, and the few records that shorten it.
type logMeter struct {
	took  mvcc.Durations
	bytes atomic.Int64
}

func newLogMeter() *logMeter {
	return &logMeter{took: mvcc.NewDurations("etcd_disk_wal_fsync_duration_seconds", "Time of an append to the raft log, with its fdatasync.")}
}

func (m *logMeter) add(took time.Duration, bytes int) {
	m.took.Observe(took.Seconds())
	m.bytes.Add(int64(bytes))
}

// meteredLog is a log store that does not count its appends itself. The bytes are those of the entries' data.
type meteredLog struct {
	raft.LogStore
	meter *logMeter
}

// StoreLog implements raft.LogStore.
func (l meteredLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (l meteredLog) StoreLogs(entries []*raft.Log) error {
	start, bytes := time.Now(), 0
	for _, e := range entries {
		bytes += len(e.Data)
	}
	err := l.LogStore.StoreLogs(entries)
	l.meter.add(time.Since(start), bytes)
	return err
}

// fsmMeter counts what the state machine applied.
type fsmMeter struct {
	bytes   atomic.Int64 // of entries
	took    mvcc.Durations
	granted atomic.Int64 // leases
	revoked atomic.Int64 // leases; those that expired are among them
}

func newFSMMeter() fsmMeter {
	return fsmMeter{took: mvcc.NewDurations("kontiki_store_apply_duration_seconds", "Time in which an entry, of many proposals, is applied.")}
}

func (m *fsmMeter) applied(bytes int, took time.Duration, commands []mvcc.Command, results []mvcc.Result) {
	if m == nil {
		return
	}
	m.bytes.Add(int64(bytes))
	m.took.Observe(took.Seconds())
	for i, r := range results {
		switch {
		case r.Err != nil:
		case commands[i].Grant != nil:
			m.granted.Add(1)
		case commands[i].Revoke != 0:
			m.revoked.Add(1)
		}
	}
}

// proposalMeter counts proposals on the leader: its own, and those that others forward.
type proposalMeter struct {
	pending atomic.Int64
	failed  atomic.Int64 // those that raft did not commit, or that it cannot say so of
	took    mvcc.Durations
}

func newProposalMeter() proposalMeter {
	return proposalMeter{took: mvcc.NewDurations("kontiki_store_proposal_duration_seconds", "Time from a proposal to its outcome, on the leader.")}
}

// begin counts a proposal until end.
func (m *proposalMeter) begin() (start time.Time) {
	m.pending.Add(1)
	return time.Now()
}

func (m *proposalMeter) end(start time.Time) {
	m.pending.Add(-1)
	m.took.Since(start)
}

// snapshotMeter counts snapshots that were sent to others.
type snapshotMeter struct {
	took   mvcc.Durations
	failed atomic.Int64
}

func newSnapshotMeter() snapshotMeter {
	return snapshotMeter{took: mvcc.NewDurations("kontiki_store_snapshot_send_duration_seconds", "Time in which another member took a snapshot.")}
}

func (m *snapshotMeter) add(took time.Duration, ok bool) {
	if !ok {
		m.failed.Add(1)
		return
	}
	m.took.Observe(took.Seconds())
}
