package mvcc

import "github.com/google/btree"

// index finds the revisions of keys: of one by its name, of a range in key order. It is guarded by Store.mu.
type index struct {
	byKey map[string]*keyIndex
	tree  *btree.BTreeG[*keyIndex] // the same, in order
}

const indexDegree = 32

func newIndex() *index {
	return &index{
		byKey: map[string]*keyIndex{},
		tree:  btree.NewG(indexDegree, func(a, b *keyIndex) bool { return a.key < b.key }),
	}
}

// get returns the index of a key, nil if the store knows nothing of it.
func (x *index) get(key []byte) *keyIndex { return x.byKey[string(key)] }

// obtain returns the index of a key, a new one if need be. The key is copied, since the caller's
// bytes belong to a whole raft entry.
func (x *index) obtain(key []byte) *keyIndex {
	if k := x.get(key); k != nil {
		return k
	}
	k := &keyIndex{key: string(key)}
	x.byKey[k.key] = k
	x.tree.ReplaceOrInsert(k)
	return k
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
	end := string(r.end)
	x.tree.AscendGreaterOrEqual(&keyIndex{key: string(r.key)}, func(k *keyIndex) bool {
		return (r.openEnded() || k.key < end) && visit(k)
	})
}

// compact compacts at most limit keys from the key `from` on. It returns the revisions that went,
// and the key to go on with, "" at the end.
func (x *index) compact(from string, main int64, limit int) (gone []Revision, next string) {
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
		delete(x.byKey, k.key)
	}
	return gone, next
}
