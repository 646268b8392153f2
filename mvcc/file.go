package mvcc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// file is the bbolt file: history and the few numbers beside it. docs/formats/mvcc-file.md draws it.
type file struct {
	db *bbolt.DB
}

var (
	historyBucket = []byte("history") // revision → record
	leasesBucket  = []byte("leases")  // id → lease
	notesBucket   = []byte("notes")   // name → note
	metaBucket    = []byte("meta")    // name → 8 bytes, big-endian
)

// formatVersion is the version of the file's layout. Version 1 had no leases, version 2 no notes, and records
// of version 3 no causes; they are brought up to date when they are opened.
const formatVersion = 4

// meta is what the file says about itself as a whole.
type meta struct {
	applied   uint64 // raft index of the last command whose effects are in the file
	revision  int64  // newest main revision; not derived from history, which compaction can empty
	compacted int64  // reads below it are refused
	swept     int64  // the compaction whose physical part is done
}

// mmapBytes is the address space (not memory) reserved for the file. While the file is smaller,
// bbolt never has to stop readers and writers to map it anew.
const mmapBytes = 4 << 30

// pageBytes is the size of a page in a new file; one that exists keeps its own until it is defragmented. History is
// appended in commits of hundreds of records, each page by a write of its own: pages of 16 KiB take a tenth less CPU
// than those of 4 KiB, and the three or four pages of a lone commit are still less than 64 KiB.
const pageBytes = 16 << 10

// lockTimeout is how long to wait for another process to let go of the file.
const lockTimeout = 2 * time.Second

// openFile opens the file at path, or creates it. It is always synced; the free list is not written
// with each commit but found again at open, so that commits stay small however large the file grew.
func openFile(path string) (*file, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         lockTimeout,
		PageSize:        pageBytes,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mmapBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f := &file{db: db}
	if err := f.init(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return f, nil
}

// init makes what a new file, or one of an older version, lacks, and refuses one of another format.
func (f *file) init() error {
	format := uint64(0)
	err := f.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(metaBucket); b != nil {
			if format = getNumber(b, "format"); format == 0 || format > formatVersion {
				return fmt.Errorf("%w: format %d, want %d", ErrCorrupt, format, formatVersion)
			}
		}
		return nil
	})
	if err != nil || format == formatVersion {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{historyBucket, leasesBucket, notesBucket, metaBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		m := readMeta(tx)
		m.revision = max(m.revision, firstRevision)
		return errors.Join(putNumber(tx.Bucket(metaBucket), "format", formatVersion), m.write(tx))
	})
}

// content is what a store keeps in memory of its file.
type content struct {
	meta   meta
	index  *index
	leases *leases
	notes  *notes
}

// load reads the numbers, the leases and the notes, and builds the index from history.
func (f *file) load() (c content, err error) {
	c = content{index: newIndex(), leases: newLeases(), notes: newNotes()}
	err = f.db.View(func(tx *bbolt.Tx) error {
		c.meta = readMeta(tx)
		if err := errors.Join(c.loadLeases(tx), c.loadNotes(tx)); err != nil {
			return err
		}
		return tx.Bucket(historyBucket).ForEach(func(k, v []byte) error {
			rev, err := parseRevision(k)
			if err != nil {
				return err
			}
			r, err := decodeRecord(rev, v)
			if err != nil {
				return err
			}
			c.index.obtain(r.kv.Key).restore(&r)
			return nil
		})
	})
	c.leases.attachAll(c.index)
	return c, err
}

func (c *content) loadLeases(tx *bbolt.Tx) error {
	return tx.Bucket(leasesBucket).ForEach(func(k, v []byte) error {
		l, err := decodeLease(k, v)
		c.leases.add(l)
		return err
	})
}

// write appends records, and sets leases, notes and the numbers, in one durable transaction.
func (f *file) write(records []*record, leases []leaseChange, notes []Note, m meta) error {
	return f.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(historyBucket)
		b.FillPercent = 0.95                  // keys only ever grow: leave no room for others between them
		key := make([]byte, 0, revisionBytes) // bbolt copies keys, and keeps values until the commit
		for _, r := range records {
			if err := b.Put(r.rev.append(key), r.stored); err != nil {
				return err
			}
		}
		return errors.Join(writeLeases(tx, leases), writeNotes(tx, notes), m.write(tx))
	})
}

func writeLeases(tx *bbolt.Tx, changes []leaseChange) (err error) {
	b := tx.Bucket(leasesBucket)
	for _, c := range changes {
		if c.lease == nil {
			err = errors.Join(err, b.Delete(leaseKey(c.id)))
		} else {
			err = errors.Join(err, b.Put(leaseKey(c.id), encodeLease(*c.lease)))
		}
	}
	return err
}

// remove deletes revisions from history, in one durable transaction.
func (f *file) remove(revisions []Revision) error {
	return f.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(historyBucket)
		for _, rev := range revisions {
			if err := b.Delete(rev.bytes()); err != nil {
				return err
			}
		}
		return nil
	})
}

func readMeta(tx *bbolt.Tx) meta {
	b := tx.Bucket(metaBucket)
	return meta{
		applied:   getNumber(b, "applied"),
		revision:  int64(getNumber(b, "revision")),
		compacted: int64(getNumber(b, "compacted")),
		swept:     int64(getNumber(b, "swept")),
	}
}

func (m meta) write(tx *bbolt.Tx) error {
	b := tx.Bucket(metaBucket)
	return errors.Join(
		putNumber(b, "applied", m.applied),
		putNumber(b, "revision", uint64(m.revision)),
		putNumber(b, "compacted", uint64(m.compacted)),
		putNumber(b, "swept", uint64(m.swept)),
	)
}

func getNumber(b *bbolt.Bucket, name string) uint64 {
	if v := b.Get([]byte(name)); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func putNumber(b *bbolt.Bucket, name string, n uint64) error {
	return b.Put([]byte(name), binary.BigEndian.AppendUint64(nil, n))
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeLeftover deletes what an interrupted restore may have left beside the file.
func removeLeftover(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}
