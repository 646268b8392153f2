package mvcc

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// view is a consistent look at all of history, as it was when the view was taken. It needs no lock,
// and must be closed. While it is open its owner may not take one either: see the package's lock order.
type view struct {
	tail      []*record
	tailStart int64
	tx        *bbolt.Tx     // nil if everything needed is in the tail
	cursor    *bbolt.Cursor // where the last record was found in the file; nil at first
	room      []byte        // for the next copies
	piece     int           // size of what room was a part of
}

// newView takes a view. The caller holds mu, so that the tail, the file and whatever the caller
// found in the index belong together: a record that the index names is in the tail or in the file,
// and the bbolt transaction keeps it there even if a sweep removes it meanwhile.
// With tailOnly the view is of what is in memory, and costs nothing.
func (s *Store) newView(tailOnly bool) (*view, error) {
	v := &view{tail: s.tail.records, tailStart: s.tail.start}
	if tailOnly {
		return v, nil
	}
	tx, err := s.file.db.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	v.tx = tx
	return v, nil
}

func (v *view) close() {
	if v.tx != nil {
		_ = v.tx.Rollback() // a read transaction; the only error is that it was closed already
	}
}

// record returns the record of a revision. It does not point into the file.
func (v *view) record(rev Revision) (record, error) {
	if rev.Main >= v.tailStart {
		if r := findRecord(v.tail, rev); r != nil {
			return *r, nil
		}
	}
	if v.tx == nil {
		return record{}, fmt.Errorf("%w: revision %d.%d is not in memory", ErrCorrupt, rev.Main, rev.Sub)
	}
	b := v.stored(rev)
	if b == nil {
		return record{}, fmt.Errorf("%w: revision %d.%d is missing", ErrCorrupt, rev.Main, rev.Sub)
	}
	return decodeRecord(rev, v.copy(b))
}

// maxPiece bounds what is kept in memory by who keeps one of many values that were read together.
const maxPiece = 16 << 10

// copy copies what the file has. Many small copies share pieces of memory, which grow as there are more of them.
func (v *view) copy(b []byte) []byte {
	if len(b) > maxPiece/4 {
		return bytes.Clone(b)
	}
	if len(v.room) < len(b) {
		v.piece = min(max(2*v.piece, len(b)), maxPiece)
		v.room = make([]byte, v.piece)
	}
	c := v.room[:len(b):len(b)]
	v.room = v.room[len(b):]
	copy(c, b)
	return c
}

// stored returns what the file has under a revision, nil if there is nothing. It points into the file. Keys that are
// neighbours were often written one after the other, and then the next record is the one wanted.
func (v *view) stored(rev Revision) []byte {
	key := rev.bytes()
	if v.cursor == nil {
		v.cursor = v.tx.Bucket(historyBucket).Cursor()
	} else if at, b := v.cursor.Next(); bytes.Equal(at, key) {
		return b
	}
	at, b := v.cursor.Seek(key)
	if !bytes.Equal(at, key) {
		return nil
	}
	return b
}

// keyValue returns the version that a put made, without its value if keysOnly.
func (v *view) keyValue(rev Revision, keysOnly bool) (KeyValue, error) {
	r, err := v.record(rev)
	if keysOnly {
		r.kv.Value = nil
	}
	return r.kv, err
}

// previous returns the version that a record replaced, nil if there was none.
func (v *view) previous(r *record) (*KeyValue, error) {
	if r.prev.IsZero() {
		return nil, nil
	}
	kv, err := v.keyValue(r.prev, false)
	return &kv, err
}
