package raftstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// RestoreConfig says what a restored member is.
type RestoreConfig struct {
	// Dir is where the member will be; it must not exist, or be empty.
	Dir string
	// NodeID and Peers are as in Config: the members of the new cluster. Either all of them are restored from
	// the same snapshot, or one alone, which the others then join.
	NodeID string
	Peers  []Peer
	// Bump is how far revisions jump, 1,000,000,000 by default (as etcd's documentation advises): more than were
	// given out after the snapshot was taken, by any reckoning.
	Bump int64
	Log  *slog.Logger
}

const defaultBump = 1_000_000_000

// RestoreSnapshot makes Dir a member of a new cluster with the content of a snapshot. Keys keep their values,
// versions, create and mod revisions; the store's revision jumps by Bump, and what is older is compacted, so that
// watches that go back to the old cluster are refused, and their clients list anew (RF-07).
//
// Dir appears whole or not at all. What it holds is a raft snapshot of the new cluster at the beginning of its
// log, so members that join later get it, too.
func RestoreSnapshot(cfg RestoreConfig, snapshot io.Reader) error {
	if cfg.Bump == 0 {
		cfg.Bump = defaultBump
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if err := checkEmpty(cfg.Dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	c, err := Config{Dir: cfg.Dir + ".restoring", NodeID: cfg.NodeID, Peers: cfg.Peers, Log: cfg.Log}.withDefaults()
	if err != nil {
		return err
	}
	err = os.RemoveAll(c.Dir) // left by a crash
	if err == nil {
		err = restoreInto(c, cfg.Bump, snapshot)
	}
	if err == nil {
		err = os.Rename(c.Dir, cfg.Dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), os.RemoveAll(c.Dir))
	}
	return syncDir(filepath.Dir(cfg.Dir))
}

// checkEmpty refuses a directory with something in it, and removes an empty one, so that it can be renamed to.
func checkEmpty(dir string) error {
	err := os.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s must be empty: %w", dir, err)
}

func restoreInto(c Config, bump int64, snapshot io.Reader) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(c.Dir, storeFile)
	store, err := mvcc.Open(path, c.Store)
	if err != nil {
		return err
	}
	if err := errors.Join(store.Restore(newUnsealed(snapshot)), store.Close()); err != nil {
		return err
	}
	index, err := mvcc.Rebase(path, bump, func(note string) bool {
		return !strings.HasPrefix(note, memberNotes) && !strings.HasPrefix(note, learnerNotes) && !strings.HasPrefix(note, alarmNotes)
	})
	if err != nil {
		return err
	}
	if err := writeFirstTerm(c.Dir); err != nil {
		return err
	}
	return writeFirstSnapshot(c, path, index)
}

// firstTerm is the term of the snapshot that a restored cluster begins with; its first leader has a later one.
const firstTerm = 1

func writeFirstTerm(dir string) error {
	stable, err := openBolt(filepath.Join(dir, stableFile))
	if err != nil {
		return err
	}
	return errors.Join(stable.SetUint64(keyCurrentTerm, firstTerm), stable.Close())
}

func writeFirstSnapshot(c Config, path string, index uint64) error {
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(c.Dir, keptSnapshots, raftLogger(c.Log))
	if err != nil {
		return err
	}
	_, encoder := raft.NewInmemTransport("") // the store wants one for a field that it does not use
	sink, err := snapshots.Create(raft.SnapshotVersionMax, index, firstTerm, c.configuration(), index, encoder)
	if err != nil {
		return err
	}
	err = writeSealed(sink, func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
