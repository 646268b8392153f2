package wal

import "fmt"

// DeleteRange implements raft.LogStore: it deletes entries min to max, both included, from the beginning of
// the log (compaction) or from its end (conflict with a leader). A range that leaves entries on both
// sides is ErrMiddle; of one that goes beyond the log, what there is of it is deleted.
func (l *Log) DeleteRange(min, max uint64) error {
	l.write.Lock()
	defer l.write.Unlock()
	b, err := l.currentBounds()
	if err != nil || b.empty() || min > max || max < b.first || min >= b.next {
		return err
	}
	switch {
	case min <= b.first && max >= b.next:
		return l.compact(b.next)
	case min <= b.first:
		return l.compact(max + 1)
	case max+1 >= b.next:
		return l.commit([]record{{recordHeader: recordHeader{kind: kindTruncate, index: min - 1}}}, 0)
	}
	return fmt.Errorf("%w: entries %d to %d of %d to %d", ErrMiddle, min, max, b.first, b.next-1)
}

// compact makes first the first index, and lets go of the segments that have no entry any more.
func (l *Log) compact(first uint64) error {
	if err := l.commit([]record{{recordHeader: recordHeader{kind: kindCompact, index: first}}}, 0); err != nil {
		return err
	}
	l.preparer.free(l.dropSegments())
	return nil
}

// dropSegments takes the segments without entries out of the log, from the oldest on: a later one may hold
// the record that truncates an earlier one. The active one stays.
func (l *Log) dropSegments() []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.segments)-1 && l.segments[n].hi() <= l.bounds.first {
		n++
	}
	dropped := append([]*segment(nil), l.segments[:n]...)
	l.segments = append([]*segment(nil), l.segments[n:]...)
	return dropped
}
