package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"kontiki/internal/pki"
	"kontiki/raftstore"
)

// What is done to a store while no process has it open. The caller holds the lock of the data directory.

// RestoreStore makes dir a store of one member with the content of a snapshot (raftstore.RestoreSnapshot). There must
// be no store in dir.
func RestoreStore(dir string, snapshot io.Reader, bump int64, log *slog.Logger) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is a store in %s: move it away first (%w)", dir, err)
	}
	fresh := dir + ".restored"
	if err := os.RemoveAll(fresh); err != nil { // left by a crash
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	id := uuid.NewString()[:8]
	if err := raftstore.RestoreSnapshot(raftstore.RestoreConfig{Dir: fresh, NodeID: id, Bump: bump, Log: log}, snapshot); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(fresh, memberIDFile), id+"\n"); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	return os.Rename(fresh, dir)
}

// RecoverStore makes the member in dir the only one of its cluster (raftstore.RecoverQuorum). It asks the others, at the
// addresses that it has of them, with the certificates in keysDir.
func RecoverStore(ctx context.Context, dir, keysDir string, log *slog.Logger) error {
	id, err := existingMemberID(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(keysDir); err != nil {
		return fmt.Errorf("the other members cannot be asked: %w", err)
	}
	keys, err := pki.Open(keysDir, pki.Options{})
	if err != nil {
		return err
	}
	network, err := networkToAsk(keys)
	if err != nil {
		return err
	}
	return raftstore.RecoverQuorum(ctx, raftstore.Config{Dir: dir, NodeID: id, Network: network, Log: log})
}

// ReadStoreLog calls f for the entries of the raft log in dir, from an index on (raftstore.ReadLog).
func ReadStoreLog(ctx context.Context, dir string, from uint64, log *slog.Logger, f func(raftstore.LogEntry) error) error {
	id, err := existingMemberID(dir)
	if err != nil {
		return err
	}
	return raftstore.ReadLog(ctx, raftstore.Config{Dir: dir, NodeID: id, Log: log}, from, f)
}

// existingMemberID is memberID where there is a store.
func existingMemberID(dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, memberIDFile)); err != nil {
		return "", fmt.Errorf("there is no store in %s: %w", dir, err)
	}
	return memberID(dir)
}
