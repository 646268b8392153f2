package wal

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
)

// recover replays what is in the directory. It changes nothing on disk unless all of it is in order.
//
// The log is the run of segments with successive sequences that ends with the last one in use. What is
// before a gap was dropped, and what is after the run was prepared for use.
func (l *Log) recover() error {
	found, err := l.openSegments()
	if err != nil {
		return err
	}
	from, to, err := findRun(found)
	if err != nil {
		return errors.Join(err, closeAll(found))
	}
	l.segments = nil
	for i, s := range found[from:to] {
		if i == 0 {
			l.bounds = bounds{s.first, s.next}
		}
		err = l.replay(s, found[from:to][i+1:])
		if err != nil {
			break
		}
	}
	if err == nil {
		err = l.checkComplete()
	}
	if err != nil {
		l.segments = nil
		return errors.Join(err, closeAll(found))
	}
	return l.adopt(found[:from], found[to:])
}

// openSegments opens all segment files, by sequence.
func (l *Log) openSegments() ([]*segment, error) {
	names, err := l.dir.List()
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var found []*segment
	for _, name := range names {
		sequence, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		s := &segment{segmentHeader: segmentHeader{sequence: sequence}}
		if s.file, err = l.dir.Open(name); err != nil {
			return nil, errors.Join(err, closeAll(found))
		}
		found = append(found, s)
		if s.size, err = s.file.Size(); err != nil {
			return nil, errors.Join(err, closeAll(found))
		}
	}
	return found, nil
}

func closeAll(segments []*segment) error {
	var errs []error
	for _, s := range segments {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}

// findRun finds the log among segment files that are sorted by sequence: found[from:to].
func findRun(found []*segment) (from, to int, err error) {
	for i := len(found) - 1; i >= 0; i-- {
		s := found[i]
		used, err := s.readHeader()
		if err != nil {
			return 0, 0, err
		}
		switch {
		case used && to == 0:
			to = i + 1
		case to != 0 && (!used || s.sequence+1 != found[i+1].sequence):
			return i + 1, to, nil
		}
	}
	if to == 0 {
		return 0, 0, nil
	}
	return 0, to, nil
}

// readHeader is false for a segment that was prepared and not used yet.
func (s *segment) readHeader() (used bool, err error) {
	b := make([]byte, min(segmentHeaderBytes, s.size))
	if _, err := s.file.ReadAt(b, 0); err != nil && err != io.EOF {
		return false, err
	}
	h, err := decodeSegmentHeader(b)
	if err != nil {
		return false, s.corrupt(0, err.Error())
	}
	if h == nil {
		return false, nil
	}
	if h.sequence != s.sequence || h.first > h.next {
		return false, s.corrupt(0, fmt.Sprintf("header is of segment %d", h.sequence))
	}
	s.segmentHeader, s.lo = *h, h.next
	return true, nil
}

// replay applies the records of a segment; later are those after it. The last one may end with a torn
// batch, the others end where the next one says.
func (l *Log) replay(s *segment, later []*segment) error {
	if (bounds{s.first, s.next}) != l.bounds {
		return s.corrupt(0, fmt.Sprintf("it begins with entries %d to %d, the one before ends with %+v", s.first, s.next, l.bounds))
	}
	l.segments = append(l.segments, s)
	if len(later) == 0 {
		if err := l.scan(s, s.size); err != nil {
			return err
		}
		return l.checkTail(s)
	}
	end := int64(later[0].prevEnd)
	if err := l.scan(s, end); err != nil {
		return err
	}
	if s.end != end {
		return s.corrupt(s.end, fmt.Sprintf("record is damaged: the segment's records end at %d", end))
	}
	return nil
}

// scan applies the records before limit, up to the first that is not valid. It leaves in s.end where it
// stopped.
func (l *Log) scan(s *segment, limit int64) error {
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, segmentHeaderBytes, s.size), zeroChunkBytes)
	var body []byte
	for s.end = segmentHeaderBytes; s.end < limit; {
		b, err := r.Peek(recordHeaderBytes)
		if err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", s.name(), err)
		}
		h, ok := decodeHeader(b, s.salt, s.end, s.size)
		if !ok {
			return nil
		}
		size := recordBytes(int(h.bodyBytes))
		if int64(cap(body)) < size {
			body = make([]byte, size)
		}
		body = body[:size]
		if _, err := io.ReadFull(r, body); err != nil {
			return fmt.Errorf("read %s: %w", s.name(), err)
		}
		if crc32.Checksum(body[recordHeaderBytes:recordHeaderBytes+h.bodyBytes], castagnoli) != h.bodySum {
			return nil
		}
		if !l.apply(s, &h, s.end) {
			return s.corrupt(s.end, fmt.Sprintf("record of kind %d with index %d does not follow %+v", h.kind, h.index, l.bounds))
		}
		s.end += size
	}
	return nil
}

// checkTail looks at what is after the last valid record of the active segment: nothing, the rest of a
// batch that was torn by a crash, or records that were acknowledged.
func (l *Log) checkTail(s *segment) error {
	const step = zeroChunkBytes - recordHeaderBytes // chunks overlap by a header
	chunk := make([]byte, zeroChunkBytes)
	for at := s.end; at < s.size; at += step {
		n, err := s.file.ReadAt(chunk, at)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read %s: %w", s.name(), err)
		}
		for i := 0; i+recordHeaderBytes <= n; i += recordAlign {
			h, ok := decodeHeader(chunk[i:n], s.salt, at+int64(i), s.size)
			if ok && int64(h.batch) > s.end {
				return s.corrupt(s.end, fmt.Sprintf("record is damaged, and it was acknowledged: an intact one at %d was written later", at+int64(i)))
			}
			if ok {
				l.mustRotate = true
			}
		}
	}
	if l.mustRotate {
		l.opts.Log.Warn("cut a torn write at the end of the raft log", "segment", s.name(), "offset", s.end, "next", l.bounds.next)
	}
	return nil
}

// checkComplete makes sure that every entry is in a segment.
func (l *Log) checkComplete() error {
	at := l.bounds.first
	for _, s := range l.segments {
		if s.lo <= at && at < s.hi() {
			at = s.hi()
		}
	}
	if at < l.bounds.next {
		return &CorruptError{File: l.segments[0].name(), Reason: fmt.Sprintf("entry %d is in no segment: a file is missing", at)}
	}
	return nil
}

// adopt takes the log over for writing: what was read becomes durable, files that are not part of it are
// recycled or removed.
func (l *Log) adopt(dropped, unused []*segment) error {
	l.preparer = preparer{dir: l.dir, log: l.opts.Log, segmentBytes: l.opts.SegmentBytes, freed: dropped}
	sequence := uint64(1)
	if s := l.active(); s != nil {
		sequence = s.sequence + 1
		// A crash of the process alone leaves writes that are not synced: they can be read, but must
		// not be lost later.
		if err := s.file.Sync(); err != nil {
			return errors.Join(err, closeAll(unused))
		}
	}
	var errs []error
	for _, s := range unused {
		if s.sequence == sequence && s.size == l.opts.SegmentBytes {
			l.preparer.next = s // durable is false: its name may not be
			continue
		}
		errs = append(errs, s.file.Close(), l.dir.Remove(s.name()))
	}
	l.preparer.freed = append(l.preparer.freed, l.dropSegments()...)
	return errors.Join(append(errs, l.preparer.prepare(0))...)
}
