package mvcc

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Options tune a Store. The zero value is good.
type Options struct {
	// CommitInterval is how long changes are gathered before they are committed to the file, 1 s by default, and
	// CommitBytes how much of them, 2 MiB by default: whichever comes first. They bound what a restart has to
	// replay, not what a crash may lose: that is the raft log's part.
	CommitInterval time.Duration
	CommitBytes    int
	// TailBytes bounds the memory kept for recent history that is in the file already, 2 MiB by default.
	TailBytes int
	// PendingBytes bounds the memory for changes that are not in the file yet, 32 MiB by default.
	// When it is full (the disk is too slow, or full), Apply waits.
	PendingBytes int
	// ProgressInterval is how often watches that ask for it hear of a revision in which nothing
	// concerned them, 1 s by default.
	ProgressInterval time.Duration
	// Log is slog.Default() by default.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.CommitInterval = orDefault(o.CommitInterval, time.Second)
	o.CommitBytes = orDefault(o.CommitBytes, 2<<20)
	o.TailBytes = orDefault(o.TailBytes, 2<<20)
	o.PendingBytes = orDefault(o.PendingBytes, 32<<20)
	o.ProgressInterval = orDefault(o.ProgressInterval, time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// Store is a revisioned key-value store in one bbolt file. Its methods may be called concurrently,
// but for Apply and Restore, which are for the one goroutine that applies the raft log.
type Store struct {
	path string
	opts Options

	// maintenance is held by who goes over the whole file: a sweep, or Defragment. It comes before commitMu.
	maintenance sync.Mutex

	// commitMu is held by whoever writes to the file, and guards durable. It comes before mu.
	commitMu sync.Mutex
	durable  meta // as the file has it

	// mu guards everything below up to the blank line, and that the file is not swapped (Restore)
	// between a look at the index and the bbolt transaction that reads what the index named.
	mu       sync.RWMutex
	closed   bool
	file     *file
	index    *index
	leases   *leases
	notes    *notes
	tail     tail
	meta     meta // as applied; the file may be behind
	watchers watchers
	waiters  waiters
	room     *sync.Cond // on mu: undurable records became fewer, or the store was closed

	background background
	counts     *Counts
}

// Open opens the store in the file at path, and creates it if it does not exist.
func Open(path string, opts Options) (*Store, error) {
	for _, suffix := range []string{restoreSuffix, defragSuffix} {
		if err := removeLeftover(path + suffix); err != nil {
			return nil, err
		}
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	c, err := f.load()
	if err != nil {
		return nil, errors.Join(err, f.db.Close())
	}
	s := &Store{path: path, opts: opts.withDefaults(), file: f, index: c.index, leases: c.leases, notes: c.notes, meta: c.meta, durable: c.meta, counts: newCounts()}
	s.tail.start = c.meta.revision + 1
	s.room = sync.NewCond(&s.mu)
	s.startBackground()
	return s, nil
}

// Close commits what was applied and closes the file. Watches end with ErrClosed.
func (s *Store) Close() error {
	if !s.markClosed() {
		return nil
	}
	s.stopBackground()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	return errors.Join(s.commitLocked(), s.file.db.Close())
}

// markClosed refuses new calls and lets waiting ones go; false if that was done before.
func (s *Store) markClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	s.room.Broadcast()
	s.waiters.closeAll()
	return true
}

// Revision is the newest main revision.
func (s *Store) Revision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.meta.revision
}

// Applied is the raft index of the newest command that was applied, durable or not.
func (s *Store) Applied() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.meta.applied
}
