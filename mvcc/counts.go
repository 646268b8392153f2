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

func newCounts() *Counts {
	return &Counts{
		Commits:  NewDurations("etcd_disk_backend_commit_duration_seconds", "Time of a commit to the mvcc file, with its syncs."),
		Restores: NewDurations("kontiki_store_snapshot_install_duration_seconds", "Time in which a snapshot took the place of the content here."),
		Defrags:  NewDurations("etcd_disk_backend_defrag_duration_seconds", "Time of a defragmentation."),
		Sweeps:   NewDurations("kontiki_store_sweep_duration_seconds", "Time of the physical part of a compaction."),
	}
}

// Counts returns the store's counts.
func (s *Store) Counts() *Counts { return s.counts }
