package mvcc

import "sync/atomic"

// Counts is what a store has done since it was opened; it goes on counting while one reads it.
type Counts struct {
	Commits   Durations    // of the file, each with its syncs
	Events    atomic.Int64 // handed to watches
	Restores  Durations    // of snapshots that took the place of the content
	Defrags   Durations
	Sweeps    Durations // the physical part of compactions
	SweptKeys atomic.Int64
}

// Counts returns the store's counts.
func (s *Store) Counts() *Counts { return &s.counts }
