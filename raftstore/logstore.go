package raftstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"kontiki/raftstore/wal"
)

// The stores that the raft log can be kept in (Config.RaftLog).
const (
	// LogWAL is the segment log of raftstore/wal: one write and one sync for a batch of entries.
	LogWAL = "wal"
	// LogBoltDB is raft-boltdb: the simplest, and several times slower.
	LogBoltDB = "boltdb"
)

const (
	stableFile    = "raft.db" // term and vote; and the log, with LogBoltDB
	walDirectory  = "log"
	logMmapBytes  = 1 << 30 // address space, not memory: see mvcc's mmapBytes
	logCacheSize  = 16      // entries, for the way from the log to followers and to the store: up to 4 MiB
	lockTimeout   = 2 * time.Second
	keptSnapshots = 1 // a snapshot is a copy of the store for others; this member has the store itself
)

// raftFiles is what raft keeps on disk by itself: the log, and the term and vote.
type raftFiles struct {
	raft.LogStore
	raft.StableStore
	dir      string
	bolt     *raftboltdb.BoltStore
	segments *wal.Log // nil with LogBoltDB
	appends  *logMeter
}

// Close closes the files. Raft must not use them any more.
func (f *raftFiles) Close() error {
	err := f.bolt.Close()
	if f.segments != nil {
		err = errors.Join(err, f.segments.Close())
	}
	return err
}

// logBytes is how much disk the log takes.
func (f *raftFiles) logBytes() int64 {
	if f.segments != nil {
		return f.segments.Stats().Bytes
	}
	return fileBytes(f.dir, stableFile)
}

// openRaftFiles opens the log in the store that it is kept in, or that is asked for if it is new.
func openRaftFiles(cfg Config) (*raftFiles, error) {
	bolt, err := openBolt(filepath.Join(cfg.Dir, stableFile))
	if err != nil {
		return nil, err
	}
	f := &raftFiles{LogStore: bolt, StableStore: bolt, dir: cfg.Dir, bolt: bolt, appends: newLogMeter()}
	kind, err := logKind(cfg, bolt)
	if err == nil && kind == LogWAL {
		f.segments, err = openSegments(cfg, f.appends)
		f.LogStore = f.segments
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if f.segments == nil {
		f.LogStore = meteredLog{f.LogStore, f.appends} // raft-boltdb cannot say how long it syncs
	}
	if cfg.OnDisk != nil {
		f.LogStore, f.StableStore = diskLog{f.LogStore, cfg.OnDisk}, diskStable{f.StableStore, cfg.OnDisk}
	}
	return f, nil
}

func openSegments(cfg Config, m *logMeter) (*wal.Log, error) {
	opts := wal.Options{Log: cfg.Log, SegmentBytes: cfg.LogSegmentBytes, OnSync: m.add}
	if cfg.LogDirectory != nil {
		return wal.OpenIn(cfg.LogDirectory, opts)
	}
	return wal.Open(filepath.Join(cfg.Dir, walDirectory), opts)
}

// logKind says where the log of a directory is kept. A log is never moved from one store to the other:
// there is no moment at which a crash would leave exactly one of them valid.
func logKind(cfg Config, bolt *raftboltdb.BoltStore) (string, error) {
	last, err := bolt.LastIndex()
	if err != nil {
		return "", err
	}
	if cfg.LogDirectory != nil {
		return LogWAL, nil
	}
	kept := ""
	if _, err := os.Stat(filepath.Join(cfg.Dir, walDirectory)); err == nil {
		kept = LogWAL
	} else if last > 0 {
		kept = LogBoltDB
	}
	switch {
	case kept == "" && cfg.RaftLog == "":
		return LogWAL, nil
	case kept == "":
		return cfg.RaftLog, nil
	case cfg.RaftLog == "" || cfg.RaftLog == kept:
		return kept, nil
	}
	return "", fmt.Errorf("%w: the raft log in %s is kept by %q, not by %q; a member changes over by joining anew with an empty directory",
		ErrOtherLog, cfg.Dir, kept, cfg.RaftLog)
}

// openBolt opens raft-boltdb. Each batch of entries is one bbolt transaction, synced.
func openBolt(path string) (*raftboltdb.BoltStore, error) {
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
		return nil, fmt.Errorf("open %s: another process uses it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return store, nil
}
