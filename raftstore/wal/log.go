package wal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sort"
	"sync"

	"github.com/hashicorp/raft"
)

// Log is a raft log in a directory. All methods may be called at the same time.
type Log struct {
	dir  Directory
	opts Options
	lock io.Closer

	// write is held by who changes the log, from before the bytes are written until mu has been
	// updated. Order of locks: write, mu, preparer.preparing.
	write sync.Mutex
	// mustRotate: the active segment has bytes after its end that could be taken for records. Guarded
	// by write.
	mustRotate bool
	buf        []byte // for the bytes of a batch; guarded by write
	lastKind   kind   // of the last record; guarded by write

	mu       sync.RWMutex // guards the fields below, and the files of segments against being recycled
	bounds   bounds
	segments []*segment // by sequence; the last one is the active one
	closed   bool

	preparer preparer
}

var (
	_ raft.LogStore          = (*Log)(nil)
	_ raft.MonotonicLogStore = (*Log)(nil)
)

// bounds are the indexes that are in the log: first to next-1, none if they are equal.
type bounds struct{ first, next uint64 }

func (b bounds) empty() bool { return b.first == b.next }

// apply changes the bounds as a record does. It is false if the record cannot follow what is there.
func (b *bounds) apply(k kind, index uint64) bool {
	switch k {
	case kindEntry:
		if b.empty() {
			*b = bounds{index, index}
		}
		if index != b.next || index == 0 || index == math.MaxUint64 {
			return false
		}
		b.next++
	case kindTruncate:
		if b.empty() || index < b.first || index >= b.next {
			return false
		}
		b.next = index + 1
	case kindCompact:
		if index < b.first || index > b.next {
			return false
		}
		b.first = index
	}
	return true
}

// Open opens the log in a directory, and makes an empty one if there is none. It fails with ErrLocked if
// another process has it, and with a CorruptError if acknowledged records are damaged.
func Open(dir string, opts Options) (*Log, error) {
	d, err := openOSDirectory(dir)
	if err != nil {
		return nil, err
	}
	return OpenIn(d, opts)
}

// OpenIn is Open for a Directory.
func OpenIn(dir Directory, opts Options) (*Log, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, opts: opts}
	if l.lock, err = dir.Lock(); err != nil {
		return nil, fmt.Errorf("wal: lock: %w", err)
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("wal: open: %w", err), l.release())
	}
	l.preparer.start(l)
	return l, nil
}

// Close waits for what is being written and releases the directory. Later calls get ErrClosed.
func (l *Log) Close() error {
	l.write.Lock()
	defer l.write.Unlock()
	if l.isClosed() {
		return nil
	}
	l.preparer.stop()
	err := l.appendClose()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return errors.Join(err, l.release())
}

// release closes the files and the lock.
func (l *Log) release() error {
	errs := []error{l.preparer.release()}
	for _, s := range l.segments {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(append(errs, l.lock.Close())...)
}

func (l *Log) isClosed() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.closed
}

// IsMonotonic implements raft.MonotonicLogStore.
func (l *Log) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore. It is 0 if the log is empty.
func (l *Log) FirstIndex() (uint64, error) {
	b, err := l.currentBounds()
	if b.empty() {
		return 0, err
	}
	return b.first, err
}

// LastIndex implements raft.LogStore. It is 0 if the log is empty.
func (l *Log) LastIndex() (uint64, error) {
	b, err := l.currentBounds()
	if b.empty() {
		return 0, err
	}
	return b.next - 1, err
}

func (l *Log) currentBounds() (bounds, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return bounds{}, ErrClosed
	}
	return l.bounds, nil
}

// GetLog implements raft.LogStore: one read from the file, verified. It is raft.ErrLogNotFound if there is
// no such entry.
func (l *Log) GetLog(index uint64, out *raft.Log) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return ErrClosed
	}
	if index < l.bounds.first || index >= l.bounds.next {
		return raft.ErrLogNotFound
	}
	s := l.segmentOf(index)
	return s.read(index, s.spots[index-s.lo], out)
}

// segmentOf finds the segment that has a live entry. mu is held.
func (l *Log) segmentOf(index uint64) *segment {
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].hi() > index })
	return l.segments[i]
}

func (s *segment) read(index uint64, at spot, out *raft.Log) error {
	offset := int64(at.offset)
	b := make([]byte, recordHeaderBytes+int(at.bodyBytes))
	if _, err := s.file.ReadAt(b, offset); err != nil {
		return fmt.Errorf("wal: read entry %d: %w", index, err)
	}
	h, ok := decodeHeader(b, s.salt, offset, s.size)
	if !ok || h.kind != kindEntry || h.index != index || h.bodyBytes != at.bodyBytes {
		return s.corrupt(offset, fmt.Sprintf("header of entry %d is damaged", index))
	}
	body := b[recordHeaderBytes:]
	if crc32.Checksum(body, castagnoli) != h.bodySum {
		return s.corrupt(offset, fmt.Sprintf("entry %d is damaged", index))
	}
	h.entry(body, out)
	return nil
}
