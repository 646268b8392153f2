package wal

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"
)

// keptBufferBytes is the largest buffer that is kept for the next batch.
const keptBufferBytes = 1 << 20

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore: all entries in one write and one fdatasync, or none. Their indexes
// must follow the last one (ErrGap); an empty log may go on at any index.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	l.write.Lock()
	defer l.write.Unlock()
	b, err := l.currentBounds()
	if err != nil || len(entries) == 0 {
		return err
	}
	records := make([]record, len(entries))
	var total int64
	for i, e := range entries {
		if !b.apply(kindEntry, e.Index) {
			return fmt.Errorf("%w: entry %d, want %d", ErrGap, e.Index, b.next)
		}
		if total += recordBytes(len(e.Extensions) + len(e.Data)); total > maxSegmentBytes {
			return fmt.Errorf("%w: entry %d", ErrTooLarge, e.Index)
		}
		records[i] = entryRecord(e)
	}
	return l.commit(records, controlReserve)
}

// commit writes one batch of records and syncs it, and then makes it part of the log. So many bytes as
// reserve stay free in the segment. write is held.
func (l *Log) commit(records []record, reserve int64) error {
	var size int64
	for i := range records {
		size += recordBytes(int(records[i].bodyBytes))
	}
	s, fresh, err := l.segmentFor(size, reserve)
	if err != nil {
		return err
	}
	b, at := l.buf[:0], s.end
	if fresh {
		b, at = s.segmentHeader.appendTo(b), 0
	}
	for i := range records {
		b = records[i].appendTo(b, s.salt, at+int64(len(b)), s.end)
	}
	if cap(b) <= keptBufferBytes {
		l.buf = b
	}
	start := time.Now()
	err = writeAndSync(s.file, b, at)
	if l.opts.OnSync != nil {
		l.opts.OnSync(time.Since(start), len(b))
	}
	if err != nil {
		// Some of it may be on disk, and look like records that follow what is written there next.
		// The next batch goes into a new segment, which says where this one ends.
		l.mustRotate = true
		if fresh {
			l.preparer.putBack(s)
		}
		return fmt.Errorf("wal: append to %s: %w", s.name(), err)
	}
	l.publish(s, fresh, records)
	return nil
}

func writeAndSync(f File, b []byte, at int64) error {
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	return f.Sync()
}

// segmentFor returns the segment for a batch of so many bytes: the active one, or a fresh one if it is
// full or must not be used any more.
func (l *Log) segmentFor(size, reserve int64) (s *segment, fresh bool, err error) {
	l.mu.RLock()
	h := segmentHeader{sequence: 1, salt: rand.Uint64(), first: l.bounds.first, next: l.bounds.next}
	active := l.active()
	l.mu.RUnlock()
	if active != nil {
		if !l.mustRotate && active.end+size+reserve <= active.size {
			return active, false, nil
		}
		h.sequence, h.prevEnd = active.sequence+1, uint64(active.end)
	}
	s, err = l.preparer.take(h.sequence, segmentHeaderBytes+size+reserve)
	if err != nil {
		return nil, false, fmt.Errorf("wal: next segment: %w", err)
	}
	s.segmentHeader, s.end, s.lo = h, segmentHeaderBytes, h.next
	return s, true, nil
}

// active returns the segment that is written to, nil in a log that never had one. mu is held.
func (l *Log) active() *segment {
	if len(l.segments) == 0 {
		return nil
	}
	return l.segments[len(l.segments)-1]
}

// publish makes records that are on disk part of the log.
func (l *Log) publish(s *segment, fresh bool, records []record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh {
		l.segments, l.mustRotate = append(l.segments, s), false
	}
	wasHalfFull := s.end > s.size/2 && !fresh
	for i := range records {
		h := &records[i].recordHeader
		if !l.apply(s, h, s.end) {
			panic(fmt.Sprintf("wal: record of kind %d with index %d does not follow %+v", h.kind, h.index, l.bounds))
		}
		s.end += recordBytes(int(h.bodyBytes))
	}
	if s.end > s.size/2 && !wasHalfFull {
		l.preparer.want(s.sequence + 1)
	}
}

// apply does to the log in memory what a record at offset of the active segment says, when it was written
// and when the log is opened. It is false if the record cannot follow what is there. mu and write are held.
func (l *Log) apply(s *segment, h *recordHeader, offset int64) bool {
	wasEmpty := l.bounds.empty()
	if !l.bounds.apply(h.kind, h.index) {
		return false
	}
	l.lastKind = h.kind
	switch {
	case h.kind == kindTruncate:
		l.truncateSegments(h.index + 1)
	case h.kind == kindEntry:
		if wasEmpty {
			l.truncateSegments(h.index) // it may go on before what it had
		}
		s.add(h.index, spot{uint32(offset), h.bodyBytes})
	}
	return true
}

func (l *Log) truncateSegments(index uint64) {
	for _, s := range l.segments {
		s.truncate(index)
	}
}

// appendClose ends the log with a record that proves that all before it was acknowledged. Where there is
// no room the log does without. write is held.
func (l *Log) appendClose() error {
	l.mu.RLock()
	s := l.active()
	l.mu.RUnlock()
	if s == nil || l.mustRotate || l.lastKind == kindClose || s.end+recordBytes(0)+controlReserve/2 > s.size {
		return nil
	}
	return l.commit([]record{{recordHeader: recordHeader{kind: kindClose}}}, 0)
}
