package mvcc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// restoreSuffix is appended to the store's path for the file that a restore builds.
const restoreSuffix = ".restore"

// WriteSnapshot writes a copy of the store to w: a bbolt file, consistent, with at least everything
// that was applied before the call, and the raft index of what it holds inside. The store's own
// file is durable up to there when WriteSnapshot returns. Reads and writes go on meanwhile.
func (s *Store) WriteSnapshot(w io.Writer) error {
	if err := s.commit(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return ErrClosed
	}
	v, err := s.newView(false)
	s.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	defer v.close()
	if _, err := v.tx.WriteTo(w); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// Restore replaces all content by a snapshot's. The snapshot is written beside the store's file,
// synced and read once before it takes the place of the file by a rename, so a crash at any moment
// leaves the one or the other. Watches go on in the new history; where that has been compacted, they
// end with ErrCompacted.
func (s *Store) Restore(r io.Reader) error {
	defer s.counts.Restores.Since(time.Now())
	temp := s.path + restoreSuffix
	if err := writeFile(temp, r); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	c, err := inspect(temp)
	if err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), removeLeftover(temp))
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(ErrClosed, removeLeftover(temp))
	}
	if err := s.swapFile(temp); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	s.adopt(c)
	return nil
}

// inspect reads a snapshot once, whole.
func inspect(path string) (content, error) {
	f, err := openFile(path)
	if err != nil {
		return content{}, err
	}
	c, err := f.load()
	return c, errors.Join(err, f.db.Close())
}

// swapFile puts the file temp in the place of the store's. The caller holds both locks; closing the
// old file waits for the reads that still use it, and these want no lock.
func (s *Store) swapFile(temp string) error {
	if err := s.file.db.Close(); err != nil {
		return err
	}
	renamed := os.Rename(temp, s.path)
	f, err := openFile(s.path) // the new one, or the old one again
	if err != nil {
		return errors.Join(renamed, err) // every use of the file will say that it is not open
	}
	s.file = f
	return errors.Join(renamed, syncDir(filepath.Dir(s.path)))
}

// adopt makes a restored file's content the store's.
func (s *Store) adopt(c content) {
	before, m := s.meta.revision, c.meta
	s.meta, s.durable, s.index, s.leases, s.notes = m, m, c.index, c.leases, c.notes
	s.tail = tail{start: m.revision + 1}
	for _, w := range s.watchers.list {
		w.missed.CompareAndSwap(0, before+1)
		kick(w.wake)
	}
	s.waiters.wake(m.applied)
	s.room.Broadcast()
	if m.swept < m.compacted {
		kick(s.background.sweep)
	}
}

func writeFile(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}
