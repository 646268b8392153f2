package mvcc

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// Cause says which command made a change: its place in the raft log. Zero is unknown: records of a file
// older than version 4 have none.
type Cause struct {
	Index    uint64 // of the raft entry
	Position int    // of the command in it, from 0
}

// Change is one change of a key, and what caused it.
type Change struct {
	Event
	Revision Revision
	Cause    Cause
}

// Versions returns all changes of a key that compaction has left, oldest first.
func (s *Store) Versions(key []byte) ([]Change, error) {
	revisions, v, err := s.revisionsOf(key)
	if err != nil || v == nil {
		return nil, err
	}
	defer v.close()
	changes := make([]Change, len(revisions))
	for i, rev := range revisions {
		r, err := v.record(rev)
		if err != nil {
			return nil, err
		}
		changes[i] = r.change()
	}
	return changes, nil
}

func (s *Store) revisionsOf(key []byte) (revisions []Revision, v *view, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	k := s.index.get(key)
	if k == nil {
		return nil, nil, nil
	}
	for _, g := range k.generations {
		revisions = append(revisions, g.revisions...)
	}
	v, err = s.newView(false)
	return revisions, v, err
}

func (r *record) change() Change { return Change{Event: r.event(nil), Revision: r.rev, Cause: r.cause} }

// ChangesOf returns the changes that the commands of a raft entry made, in order; none if it made none, or if
// compaction took them. Changes come in the order of the log, so it is found by halving.
func (s *Store) ChangesOf(index uint64) ([]Change, error) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return nil, ErrClosed
	}
	v, err := s.newView(false)
	low, high := s.meta.compacted, s.meta.revision
	s.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	defer v.close()
	for low < high { // the first revision whose cause is at index or later is in (low, high]
		middle := low + (high-low)/2
		r, err := v.firstFrom(middle)
		switch {
		case err != nil:
			return nil, err
		case r == nil || r.cause.Index >= index:
			high = middle
		default:
			low = max(middle+1, r.rev.Main+1)
		}
	}
	return v.causedBy(index, low)
}

// firstFrom returns the first record of main revision main or later, nil if there is none.
func (v *view) firstFrom(main int64) (*record, error) {
	k, b := v.tx.Bucket(historyBucket).Cursor().Seek(Revision{Main: main}.bytes())
	if k != nil {
		rev, err := parseRevision(k)
		if err != nil || rev.Main < v.tailStart {
			r, err2 := decodeRecord(rev, b)
			return &r, errors.Join(err, err2)
		}
	}
	if rest := recordsFrom(v.tail, main); len(rest) > 0 {
		return rest[0], nil
	}
	return nil, nil
}

// causedBy returns the changes from main revision main on as long as the entry at index caused them.
func (v *view) causedBy(index uint64, main int64) (changes []Change, err error) {
	for {
		r, err := v.firstFrom(main)
		if err != nil || r == nil || r.cause.Index != index {
			return changes, err
		}
		main = r.rev.Main
		records, err := v.transaction(main)
		if err != nil {
			return changes, err
		}
		for _, r := range records {
			changes = append(changes, r.change())
		}
		main++
	}
}

// transaction returns the records of a main revision.
func (v *view) transaction(main int64) (records []*record, err error) {
	of := func(r *record) bool {
		if r.rev.Main == main {
			records = append(records, r)
		}
		return r.rev.Main == main
	}
	if main < v.tailStart {
		err = forRecords(v.tx, main, of)
		return records, err
	}
	for _, r := range recordsFrom(v.tail, main) {
		if !of(r) {
			break
		}
	}
	return records, nil
}

// forRecords calls f for the records in the file from main on, until it returns false.
func forRecords(tx *bbolt.Tx, main int64, f func(*record) bool) error {
	c := tx.Bucket(historyBucket).Cursor()
	for k, b := c.Seek(Revision{Main: main}.bytes()); k != nil; k, b = c.Next() {
		rev, err := parseRevision(k)
		if err != nil {
			return err
		}
		r, err := decodeRecord(rev, bytes.Clone(b))
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		if !f(&r) {
			return nil
		}
	}
	return nil
}
