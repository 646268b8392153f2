package mvcc

import (
	"fmt"
	"time"
)

// commitLoop brings what was applied into the file, in batches, so that the apply path never waits
// for a disk. Durability of single writes is the raft log's part.
func (s *Store) commitLoop() {
	b := &s.background
	for {
		select {
		case <-b.dirty:
		case <-b.stop:
			return // Close commits once more
		}
		if b.pauseUnless(s.opts.CommitInterval, b.urgent) {
			s.retry("commit", s.commit)
		}
	}
}

// Sync makes everything that was applied before the call durable in the file.
func (s *Store) Sync() error { return s.commit() }

// commit writes the undurable part of the tail, the leases and notes that changed and the
// numbers that go with them, to the file in one bbolt transaction. Apply goes on meanwhile: what it adds is
// the next commit's.
func (s *Store) commit() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := s.checkOpen(); err != nil {
		return err
	}
	return s.commitLocked()
}

// commitLocked is commit for a caller that holds commitMu.
func (s *Store) commitLocked() error {
	s.mu.Lock()
	records, m, f := s.tail.undurable(), s.meta, s.file
	leases, notes := s.leases.takeChanged(), s.notes.takeChanged()
	s.mu.Unlock()
	if m == s.durable {
		return nil // leases and notes do not change without an index
	}
	start := time.Now()
	err := f.write(records, leases, notes, m)
	s.counts.Commits.Since(start)

	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.leases.giveBack(leases)
		s.notes.giveBack(notes)
		return fmt.Errorf("commit: %w", err)
	}
	s.durable = m
	s.tail.committed(len(records), s.opts.TailBytes)
	s.room.Broadcast()
	return nil
}

// waitForRoom holds Apply up while too much waits for the disk. It returns with mu held, as it was called.
func (s *Store) waitForRoom() {
	for !s.closed && s.tail.undurableBytes() > s.opts.PendingBytes {
		kick(s.background.urgent)
		s.room.Wait()
	}
}

// noteDirty tells the commit loop that there is something to do.
func (s *Store) noteDirty() {
	kick(s.background.dirty)
	if s.tail.undurableBytes() > s.opts.CommitBytes {
		kick(s.background.urgent)
	}
}
