package mvcc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// defragSuffix is appended to the store's path for the file that a defragmentation builds.
const defragSuffix = ".defrag"

// copyBytes is about how much of history one bbolt transaction of a copy takes. While others may write to the disk, each
// such part is synced, and then nothing is done for as long as it took: others that sync must not wait behind a copy that
// fills the disk's queue.
const copyBytes = 1 << 20

// Defragment gives free pages back to the file system: it copies what is in use to a new file, which takes
// the place of the old one by a rename. Reads, writes and commits go on meanwhile:
//
//	old file   ─────────────┬──────────────┬─ closed when the last read of it is over
//	commits    ──►──►──►──►─┼─►──►──►──►──►│──►──►  (held up here, for what came during the copy)
//	new file                └─ copy … sync │ rest, rename
//
// Revisions only ever grow, so what was committed during the copy stands behind it; and sweeps, which
// delete, wait. It needs as much disk as the data in use. A crash leaves the old file or the new one.
func (s *Store) Defragment(ctx context.Context) error {
	s.maintenance.Lock()
	defer s.maintenance.Unlock()
	temp := s.path + defragSuffix
	if err := removeLeftover(temp); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	defer s.counts.Defrags.Since(time.Now())
	old, err := s.defragment(ctx, temp)
	if err != nil {
		return errors.Join(fmt.Errorf("defragment: %w", err), removeLeftover(temp))
	}
	return old.db.Close() // waits for those who still read it
}

// defragment builds the new file at temp, puts it in place, and returns the old one.
func (s *Store) defragment(ctx context.Context, temp string) (old *file, err error) {
	next, err := openFile(temp)
	if err != nil {
		return nil, err
	}
	next.db.NoSync = true // until it is complete it is worth nothing anyway
	old, next, err = s.copyAndSwap(ctx, next, temp)
	if err != nil {
		return nil, errors.Join(err, next.db.Close())
	}
	return old, nil
}

func (s *Store) copyAndSwap(ctx context.Context, next *file, temp string) (*file, *file, error) {
	old, err := s.currentFile()
	if err != nil {
		return nil, next, err
	}
	last, err := s.copyHistory(ctx, old, next, Revision{}, s.giveWay)
	if err != nil {
		return nil, next, err
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if f, err := s.currentFile(); err != nil || f != old {
		return nil, next, errors.Join(err, errSwapped)
	}
	atOnce := func(*file, time.Time) error { return nil }
	if _, err := s.copyHistory(ctx, old, next, last.next(), atOnce); err != nil {
		return nil, next, err
	}
	if err := copyRest(old, next); err != nil {
		return nil, next, err
	}
	next.db.NoSync = false
	if err := next.db.Sync(); err != nil {
		return nil, next, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, next, ErrClosed
	}
	if err := os.Rename(temp, s.path); err != nil {
		return nil, next, err
	}
	s.file = next
	if err := syncDir(filepath.Dir(s.path)); err != nil {
		s.opts.Log.Error("rename not durable yet", "file", s.path, "err", err) // either file is right after a crash
	}
	return old, next, nil
}

// errSwapped: the store was restored from a snapshot meanwhile, and that wrote a fresh file.
var errSwapped = errors.New("mvcc: the file was replaced meanwhile")

func (s *Store) currentFile() (*file, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	return s.file, nil
}

// copyHistory copies the records from a revision on, and returns the last one's, or the one before from if
// there is none. After each part it calls between, with the time when that was begun.
func (s *Store) copyHistory(
	ctx context.Context, old, next *file, from Revision, between func(next *file, began time.Time) error,
) (last Revision, err error) {
	last = from
	for {
		began := time.Now()
		if err := ctx.Err(); err != nil {
			return last, err
		}
		select {
		case <-s.background.stop:
			return last, ErrClosed
		default:
		}
		n, err := copySome(old, next, from, &last)
		if n == 0 || err != nil {
			return last, err
		}
		from = last.next()
		if err := between(next, began); err != nil {
			return last, err
		}
	}
}

// giveWay syncs what was copied since began, and waits for as long as that and the copy took, or until the store is closed.
func (s *Store) giveWay(next *file, began time.Time) error {
	if err := next.db.Sync(); err != nil {
		return err
	}
	pause := time.NewTimer(time.Since(began))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-s.background.stop:
	}
	return nil
}

// copySome copies some records, in one transaction of each file, and returns how many.
func copySome(old, next *file, from Revision, last *Revision) (n int, err error) {
	err = old.db.View(func(src *bbolt.Tx) error {
		return next.db.Update(func(dst *bbolt.Tx) error {
			b := dst.Bucket(historyBucket)
			b.FillPercent = 0.95
			size := 0
			c := src.Bucket(historyBucket).Cursor()
			for k, v := c.Seek(from.bytes()); k != nil && size < copyBytes; k, v = c.Next() {
				if *last, err = parseRevision(k); err != nil {
					return err
				}
				if err := b.Put(bytes.Clone(k), v); err != nil {
					return err
				}
				size += len(v)
				n++
			}
			return nil
		})
	})
	return n, err
}

// copyRest copies the buckets other than history.
func copyRest(old, next *file) error {
	return old.db.View(func(src *bbolt.Tx) error {
		return next.db.Update(func(dst *bbolt.Tx) error {
			for _, name := range [][]byte{leasesBucket, notesBucket, metaBucket} {
				b := dst.Bucket(name)
				err := src.Bucket(name).ForEach(func(k, v []byte) error { return b.Put(bytes.Clone(k), v) })
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}
