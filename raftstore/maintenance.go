package raftstore

import (
	"context"
	"io"
)

// WriteSnapshot writes a copy of this member's store; see mvcc.Store.WriteSnapshot.
func (m *Member) WriteSnapshot(w io.Writer) error { return m.store.WriteSnapshot(w) }

// Defragment gives the free pages of this member's file back to the disk; see mvcc.Store.Defragment.
func (m *Member) Defragment(ctx context.Context) error { return m.store.Defragment(ctx) }
