package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("wal: closed")
	// ErrLocked: another process has the directory open.
	ErrLocked = errors.New("wal: the directory is in use by another process")
	// ErrCorrupt: what is on disk is not what was written. See CorruptError, which wraps it.
	ErrCorrupt = errors.New("wal: corrupt")
	// ErrGap: an entry's index does not follow that of the last entry.
	ErrGap = errors.New("wal: index does not follow the last one")
	// ErrMiddle: a range to delete has entries on both sides, which would leave a gap.
	ErrMiddle = errors.New("wal: cannot delete in the middle")
	// ErrTooLarge: a batch has more than 1 GiB.
	ErrTooLarge = errors.New("wal: batch too large")
)

// CorruptError says where the damage is. Nothing was changed on disk.
type CorruptError struct {
	File   string // within the log's directory
	Offset int64  // bytes
	Reason string
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: corrupt: %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

// Unwrap makes errors.Is(err, ErrCorrupt) true.
func (*CorruptError) Unwrap() error { return ErrCorrupt }
