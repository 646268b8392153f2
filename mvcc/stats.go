package mvcc

import "go.etcd.io/bbolt"

// Stats is what a store can say about itself.
type Stats struct {
	Revision     int64  `json:"revision"`  // newest main revision
	Compacted    int64  `json:"compacted"` // reads below are refused
	Swept        int64  `json:"swept"`     // the compaction whose space has been freed; below Compacted while a sweep runs or fails
	Applied      uint64 `json:"applied"`   // raft index of the newest command applied
	Durable      uint64 `json:"durable"`   // raft index up to which the file is complete
	Keys         int    `json:"keys"`      // keys in the index, deleted ones included until compaction forgets them
	Leases       int    `json:"leases"`
	Watchers     int    `json:"watchers"`
	SlowWatchers int    `json:"slowWatchers"` // watches whose receiver leaves events lying while more have come
	TailBytes    int    `json:"tailBytes"`    // memory held by recent history
	PendingBytes int    `json:"pendingBytes"` // part of TailBytes that is not in the file yet
	FileBytes    int64  `json:"fileBytes"`    // size of the file
	InUseBytes   int64  `json:"inUseBytes"`   // without its free pages
	FreePages    int    `json:"freePages"`    // pages of the file for new data, or for Defragment to give back
}

// Stats returns current figures.
func (s *Store) Stats() (Stats, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return Stats{}, ErrClosed
	}
	st := Stats{
		Revision: s.meta.revision, Compacted: s.meta.compacted, Swept: s.meta.swept, Applied: s.meta.applied,
		Keys: s.index.tree.Len(), Leases: len(s.leases.byID), Watchers: len(s.watchers.list),
		TailBytes: s.tail.bytes, PendingBytes: s.tail.undurableBytes(),
	}
	for _, w := range s.watchers.list {
		if w.slow() {
			st.SlowWatchers++
		}
	}
	err := s.file.db.View(func(tx *bbolt.Tx) error {
		st.Durable = readMeta(tx).applied
		st.FileBytes = tx.Size()
		pages := s.file.db.Stats() // those pending are free as soon as older readers have gone and somebody writes
		st.FreePages = pages.FreePageN + pages.PendingPageN
		st.InUseBytes = st.FileBytes - int64(st.FreePages)*int64(tx.DB().Info().PageSize)
		return nil
	})
	return st, err
}
