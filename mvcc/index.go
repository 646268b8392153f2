package mvcc

import (
	"bytes"

	"github.com/google/btree"
)

// index finds the revisions of keys, in key order. It is guarded by Store.mu.
type index struct {
	tree *btree.BTreeG[*keyIndex]
}

const indexDegree = 32

func newIndex() *index {
	return &index{tree: btree.NewG(indexDegree, func(a, b *keyIndex) bool { return bytes.Compare(a.key, b.key) < 0 })}
}

// get returns the index of a key, nil if the store knows nothing of it.
func (x *index) get(key []byte) *keyIndex {
	k, _ := x.tree.Get(&keyIndex{key: key})
	return k
}

// obtain returns the index of a key, a new one if need be. The key is copied, since the caller's
// bytes belong to a whole raft entry.
func (x *index) obtain(key []byte) *keyIndex {
	if k := x.get(key); k != nil {
		return k
	}
	k := &keyIndex{key: bytes.Clone(key)}
	x.tree.ReplaceOrInsert(k)
	return k
}

// current returns the newest version of a key.
func (x *index) current(key []byte) (*keyIndex, version, bool) {
	k := x.get(key)
	if k == nil {
		return nil, version{}, false
	}
	g := k.open()
	if g == nil {
		return k, version{}, false
	}
	return k, g.version(len(g.revisions) - 1), true
}

// scan calls f for each key in r that existed at main, in key order, until f returns false.
func (x *index) scan(r keyRange, main int64, f func(*keyIndex, version) bool) {
	visit := func(k *keyIndex) bool {
		if v, ok := k.at(main); ok {
			return f(k, v)
		}
		return true
	}
	if r.single() {
		if k := x.get(r.key); k != nil {
			visit(k)
		}
		return
	}
	x.tree.AscendGreaterOrEqual(&keyIndex{key: r.key}, func(k *keyIndex) bool {
		return r.before(k.key) && visit(k)
	})
}

// compact compacts at most limit keys from the key `from` on. It returns the revisions that went,
// and the key to go on with, nil at the end.
func (x *index) compact(from []byte, main int64, limit int) (gone []Revision, next []byte) {
	var empty []*keyIndex
	x.tree.AscendGreaterOrEqual(&keyIndex{key: from}, func(k *keyIndex) bool {
		if limit == 0 {
			next = k.key
			return false
		}
		limit--
		gone = append(gone, k.compact(main)...)
		if len(k.generations) == 0 {
			empty = append(empty, k)
		}
		return true
	})
	for _, k := range empty {
		x.tree.Delete(k)
	}
	return gone, next
}
