package raftstore

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// fsm is the state machine that raft drives: it hands committed entries to the mvcc store.
type fsm struct {
	store   *mvcc.Store
	lessor  *lessor   // hears of leases that come and go; may be nil
	meter   *fsmMeter // counts what is applied; may be nil
	noSpace *noSpace  // hears of alarms; may be nil
	commits *commits  // hears that there are more; may be nil
}

var _ raft.BatchingFSM = (*fsm)(nil)

// ApplyBatch implements raft.BatchingFSM. The answer to an entry is a []mvcc.Result, one for each
// proposal; nil if the store had the entry already.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	f.commits.grew()
	answers := make([]any, len(logs))
	for i, l := range logs {
		answers[i] = f.Apply(l)
	}
	return answers
}

// Apply implements raft.FSM. It panics on an entry that it does not understand: it was committed, so
// it must be applied, and no member may go on without it.
func (f *fsm) Apply(l *raft.Log) any {
	if l.Type != raft.LogCommand || l.Index <= f.store.Applied() {
		return nil // the latter after a start: raft replays more than is missing
	}
	commands, err := decodeCommands(l.Data, l.Term)
	if err != nil {
		panic(fmt.Sprintf("raftstore: entry %d: %v", l.Index, err))
	}
	start := time.Now()
	results := f.store.Apply(l.Index, commands...)
	f.meter.applied(len(l.Data), time.Since(start), commands, results)
	for i, r := range results {
		if r.Err == nil {
			f.lessor.applied(commands[i])
			f.noSpace.applied(commands[i])
		}
	}
	return results
}

// Snapshot implements raft.FSM. The work is done in Persist, beside further entries: a snapshot that
// contains a little more than its index says is fine, since entries that the store has are skipped.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) { return snapshot(*f), nil }

// Restore implements raft.FSM: a leader sent its snapshot.
func (f *fsm) Restore(r io.ReadCloser) error {
	defer f.noSpace.restored()
	return errors.Join(f.store.Restore(newUnsealed(r)), r.Close())
}

type snapshot fsm

// Persist implements raft.FSMSnapshot. WriteSnapshot makes the store durable beyond the snapshot's
// index first. Raft truncates its log after this, and with NoSnapshotRestoreOnStart counts on the
// store to have at least what the snapshot has.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := writeSealed(sink, s.store.WriteSnapshot); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s snapshot) Release() {}
