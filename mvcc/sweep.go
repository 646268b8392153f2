package mvcc

import "time"

// sweepKeys is how many keys a sweep looks at in one go, with the store locked; a tenth of a
// millisecond or so. What they leave behind is removed from the file in one bbolt transaction.
const sweepKeys = 500

// sweeper does the physical part of compactions: it forgets, in the index and then in the file, what
// can no longer be asked for. It goes by the index, never through all of history, and always index
// first: a reader that finds a revision in the index finds it in the file. If it is cut short by a
// crash, the index built at the next open shows again what is left to remove.
type sweeper struct {
	s      *Store
	doomed []Revision // gone from the index, still in the file
}

// sweepLoop sweeps after each compaction. When that fails it tries again, for as long as the store is open.
func (s *Store) sweepLoop() {
	w := &sweeper{s: s}
	for {
		select {
		case <-s.background.sweep:
			s.retry("sweep", w.sweep)
		case <-s.background.stop:
			return
		}
	}
}

// sweep brings the file up to the newest compaction. If the file is swapped meanwhile (Restore), it
// leaves off: adopt has it called again for the new one.
func (w *sweeper) sweep() error {
	s := w.s
	s.maintenance.Lock()
	defer s.maintenance.Unlock()
	s.mu.RLock()
	target, swept, f := s.meta.compacted, s.meta.swept, s.file
	s.mu.RUnlock()
	if swept >= target {
		return nil
	}
	defer s.counts.Sweeps.Since(time.Now())
	// What is to be removed must be in the file first, or a later commit would bring it back.
	if err := s.commit(); err != nil {
		return err
	}
	for from, more := "", true; more; more = from != "" {
		select {
		case <-s.background.stop:
			return nil // the next Open goes on
		default:
		}
		var err error
		if from, err = w.some(f, from, target); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if s.file == f {
		s.meta.swept = target
	}
	s.mu.Unlock()
	return s.commit()
}

// some sweeps a few keys from the key `from` on and returns the next one, "" at the end.
func (w *sweeper) some(f *file, from string, target int64) (next string, err error) {
	s := w.s
	s.commitMu.Lock() // so that the file is not swapped while it is written
	defer s.commitMu.Unlock()
	s.mu.Lock()
	if s.file != f {
		s.mu.Unlock()
		w.doomed = nil
		return "", nil
	}
	gone, next := s.index.compact(from, target, sweepKeys)
	s.mu.Unlock()
	w.doomed = append(w.doomed, gone...)
	if len(w.doomed) == 0 {
		return next, nil
	}
	if err := f.remove(w.doomed); err != nil {
		return "", err
	}
	s.counts.SweptKeys.Add(int64(len(w.doomed)))
	w.doomed = nil
	return next, nil
}
