package mvcc

import (
	"cmp"
	"encoding/binary"
)

// Revision names one change in history: Main counts the transactions that wrote, Sub the changes
// within one, from 0. A fresh store is at main revision 1, so the first write is 2.0, as in etcd.
type Revision struct {
	Main int64
	Sub  int32
}

// firstRevision is the main revision of a store in which nothing was ever written.
const firstRevision = 1

// Compare orders revisions as they happened.
func (r Revision) Compare(o Revision) int {
	if c := cmp.Compare(r.Main, o.Main); c != 0 {
		return c
	}
	return cmp.Compare(r.Sub, o.Sub)
}

// IsZero reports whether r names no change at all.
func (r Revision) IsZero() bool { return r == Revision{} }

// revisionBytes is the length of a revision as a key of the file: main and sub, big-endian, so that
// the order of the bytes is the order of history.
const revisionBytes = 12

func (r Revision) bytes() []byte { return r.append(make([]byte, 0, revisionBytes)) }

func (r Revision) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.Main))
	return binary.BigEndian.AppendUint32(b, uint32(r.Sub))
}

func parseRevision(b []byte) (Revision, error) {
	if len(b) != revisionBytes {
		return Revision{}, ErrCorrupt
	}
	return Revision{
		Main: int64(binary.BigEndian.Uint64(b)),
		Sub:  int32(binary.BigEndian.Uint32(b[8:])),
	}, nil
}

// next is the smallest revision after r.
func (r Revision) next() Revision { return Revision{Main: r.Main, Sub: r.Sub + 1} }
