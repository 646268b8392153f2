package raftstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// restoreIfBehind restores the newest snapshot if the store is behind it. That happens when a member was
// stopped between receiving a leader's snapshot and installing it, or when its mvcc file was lost.
// Raft itself will not do it (NoSnapshotRestoreOnStart): it goes on with the entry after the
// snapshot, and what the store lacks before that would be missing for ever.
//
// A snapshot's index can be that of an entry that the store never sees (a barrier), so the store may
// look behind when it is not. Restoring is right then, too: the snapshot has all that the store has.
func restoreIfBehind(store *mvcc.Store, snapshots raft.SnapshotStore) error {
	list, err := snapshots.List() // newest first
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	if len(list) == 0 || list[0].Index <= store.Applied() {
		return nil
	}
	_, content, err := snapshots.Open(list[0].ID)
	if err != nil {
		return fmt.Errorf("open snapshot %s: %w", list[0].ID, err)
	}
	defer content.Close()
	return store.Restore(newUnsealed(content))
}

// refuseIfAhead returns ErrLogLost if the store is ahead of everything that raft has. In life it never is: an
// entry is in the log, on disk, before it is applied.
func refuseIfAhead(store *mvcc.Store, log raft.LogStore, snapshots raft.SnapshotStore) error {
	reached, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("last index of the raft log: %w", err)
	}
	list, err := snapshots.List() // newest first
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	if len(list) > 0 {
		reached = max(reached, list[0].Index)
	}
	if applied := store.Applied(); applied > reached {
		return fmt.Errorf("%w: it has applied %d, raft reaches %d; put the log back, restore a snapshot, or let the member join anew with an empty directory",
			ErrLogLost, applied, reached)
	}
	return nil
}

// removePartialSnapshots deletes what a crash has left of snapshots that were being written. Raft's
// snapshot store ignores these directories (their names end in .tmp), but keeps them for ever.
func removePartialSnapshots(dir string) error {
	partial, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp"))
	for _, p := range partial {
		err = errors.Join(err, os.RemoveAll(p))
	}
	return err
}
