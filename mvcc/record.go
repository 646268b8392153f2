package mvcc

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// record is one change of one key: what the file stores under a revision and what watchers see.
// A record never changes once it is in the tail, so it can be read without a lock.
type record struct {
	rev       Revision
	prev      Revision // the version that this one replaced; zero if the key did not exist
	tombstone bool     // the key was deleted; kv has only Key and ModRevision
	kv        KeyValue
	cause     Cause
	stored    []byte // the record as the file has it; what seal makes
}

// size is about what the record costs in memory, in bytes.
func (r *record) size() int { return len(r.kv.Key) + len(r.kv.Value) + 192 }

// seal ends the making of a record: it has its own copy of key and value from now on, within what is to be
// written to the file. Who keeps a value shall not keep the whole raft entry that it came with, and the copy that
// the file wants is that one already.
func (r *record) seal() {
	r.stored = r.encode()
	value := len(r.stored) - len(r.kv.Value)
	r.kv.Key = r.stored[value-len(r.kv.Key) : value : value]
	if r.kv.Value != nil {
		r.kv.Value = r.stored[value:]
	}
}

func (r *record) event(prev *KeyValue) Event {
	if r.tombstone {
		return Event{Type: DeleteEvent, KV: r.kv, PrevKV: prev}
	}
	return Event{Type: PutEvent, KV: r.kv, PrevKV: prev}
}

const (
	flagTombstone = 1 << 0
	flagCause     = 1 << 1 // the cause follows the lengths; files before version 4 have none
)

// encode gives the record's value in the file; docs/formats/mvcc-file.md draws it.
// The revision is not in it: it is the key.
func (r *record) encode() []byte {
	var space [1 + 8*binary.MaxVarintLen64]byte
	b, flags := space[:0], byte(0)
	if r.tombstone {
		flags |= flagTombstone
	}
	if r.cause != (Cause{}) {
		flags |= flagCause
	}
	b = append(b, flags)
	for _, n := range []int64{r.kv.CreateRevision, r.kv.Version, r.kv.Lease, r.prev.Main, int64(r.prev.Sub), int64(len(r.kv.Key))} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	if flags&flagCause != 0 {
		b = binary.AppendUvarint(binary.AppendUvarint(b, r.cause.Index), uint64(r.cause.Position))
	}
	return slices.Concat(b, r.kv.Key, r.kv.Value)
}

// decodeRecord reads what encode wrote. The record's Key and Value point into b.
func decodeRecord(rev Revision, b []byte) (record, error) {
	corrupt := func() (record, error) {
		return record{}, fmt.Errorf("%w: record of revision %d.%d", ErrCorrupt, rev.Main, rev.Sub)
	}
	if len(b) == 0 || b[0]&^(flagTombstone|flagCause) != 0 {
		return corrupt()
	}
	tombstone, numbers := b[0]&flagTombstone != 0, 6
	if b[0]&flagCause != 0 {
		numbers = 8
	}
	b = b[1:]
	var n [8]uint64
	for i := range numbers {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return corrupt()
		}
		n[i], b = v, b[size:]
	}
	if n[5] > uint64(len(b)) {
		return corrupt()
	}
	return record{
		rev:       rev,
		prev:      Revision{Main: int64(n[3]), Sub: int32(n[4])},
		tombstone: tombstone,
		cause:     Cause{Index: n[6], Position: int(n[7])},
		kv: KeyValue{
			Key: b[:n[5]:n[5]], Value: b[n[5]:], ModRevision: rev.Main,
			CreateRevision: int64(n[0]), Version: int64(n[1]), Lease: int64(n[2]),
		},
	}, nil
}
