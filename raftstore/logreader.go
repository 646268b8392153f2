package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// logReader reads a raft log, together with the store that it led to.
type logReader struct {
	log             raft.LogStore
	store           *mvcc.Store
	last, committed func() uint64 // indexes
}

// Log calls f for the entries of this member's raft log from an index on, the first one if that is less, until
// f returns an error, which it returns.
func (m *Member) Log(ctx context.Context, from uint64, f func(LogEntry) error) error {
	r := logReader{log: m.log, store: m.store, last: m.raft.LastIndex, committed: m.raft.CommitIndex}
	return r.read(ctx, from, f)
}

// ReadLog is Member.Log for a member that does not run: of Config, only Dir, NodeID and Log count. What the store has
// not applied may be committed all the same, which only the running cluster knows.
func ReadLog(ctx context.Context, cfg Config, from uint64, f func(LogEntry) error) (err error) {
	if cfg, err = cfg.withDefaults(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, stableFile)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no raft log in %s", cfg.Dir) // opening would make one
	}
	m := &Member{cfg: cfg}
	defer func() { err = errors.Join(err, m.release()) }()
	if m.log, err = openRaftFiles(cfg); err != nil {
		return err
	}
	if m.store, err = mvcc.Open(filepath.Join(cfg.Dir, storeFile), cfg.Store); err != nil {
		return err
	}
	last, err := m.log.LastIndex()
	if err != nil {
		return err
	}
	r := logReader{log: m.log, store: m.store, last: func() uint64 { return last }, committed: m.store.Applied}
	return r.read(ctx, from, f)
}

func (r *logReader) read(ctx context.Context, from uint64, f func(LogEntry) error) error {
	first, err := r.log.FirstIndex()
	if err != nil {
		return err
	}
	for i := max(from, first); i != 0 && i <= r.last(); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var l raft.Log
		if err := r.log.GetLog(i, &l); errors.Is(err, raft.ErrLogNotFound) {
			continue // compacted meanwhile
		} else if err != nil {
			return fmt.Errorf("read entry %d: %w", i, err)
		}
		entry, err := r.describe(&l)
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if err := f(entry); err != nil {
			return err
		}
	}
	return nil
}

func (r *logReader) describe(l *raft.Log) (LogEntry, error) {
	entry := LogEntry{
		Index: l.Index, Term: l.Term, AppendedAt: l.AppendedAt, Bytes: len(l.Data), Committed: l.Index <= r.committed(),
	}
	switch l.Type {
	case raft.LogNoop:
		entry.Kind = "noop"
	case raft.LogBarrier:
		entry.Kind = "barrier"
	case raft.LogConfiguration:
		entry.Kind = "configuration"
		for _, s := range raft.DecodeConfiguration(l.Data).Servers {
			member := MemberInfo{ID: string(s.ID), Address: string(s.Address), Learner: s.Suffrage != raft.Voter}
			entry.Members = append(entry.Members, member)
		}
	default:
		entry.Kind = "command"
		return entry, r.describeCommand(l, &entry)
	}
	return entry, nil
}

func (r *logReader) describeCommand(l *raft.Log, entry *LogEntry) error {
	proposals, err := decodeEntry(l.Data)
	if err != nil {
		return err
	}
	revisions := map[int]int64{}
	changes, err := r.store.ChangesOf(l.Index)
	if err != nil {
		return err
	}
	for _, c := range changes {
		revisions[c.Cause.Position] = c.Revision.Main
	}
	for i, p := range proposals {
		d := LogProposal{Origin: p.origin, Revision: revisions[i]}
		d.describe(p.command)
		entry.Proposals = append(entry.Proposals, d)
	}
	return nil
}
