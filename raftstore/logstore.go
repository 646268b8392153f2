package raftstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	logFile       = "raft.db"
	logMmapBytes  = 1 << 30 // address space, not memory: see mvcc's mmapBytes
	logCacheSize  = 128     // entries, for followers that are nearly up to date
	lockTimeout   = 2 * time.Second
	keptSnapshots = 1 // a snapshot is a copy of the store for others; this member has the store itself
)

// boltLog is raft-boltdb as raft's log and stable store. Each batch of entries is one bbolt
// transaction, synced.
type boltLog struct {
	*raftboltdb.BoltStore
}

var _ raft.MonotonicLogStore = boltLog{}

// IsMonotonic implements raft.MonotonicLogStore. bbolt does not mind gaps between entries; but only
// for a store that says it does will raft drop the whole log when a snapshot was installed. With
// others it keeps trailing entries, and if these conflict with the leader's, the follower asks for
// one snapshot after the other for ever (hashicorp/raft issue 697, open in 1.8.0).
func (boltLog) IsMonotonic() bool { return true }

func openLog(dir string) (boltLog, error) {
	path := filepath.Join(dir, logFile)
	store, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		BoltOptions: &bbolt.Options{
			Timeout:         lockTimeout,
			NoFreelistSync:  true,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: logMmapBytes,
		},
		MsgpackUseNewTimeFormat: true,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return boltLog{}, fmt.Errorf("open %s: another process uses it", path)
	}
	if err != nil {
		return boltLog{}, fmt.Errorf("open %s: %w", path, err)
	}
	return boltLog{store}, nil
}
