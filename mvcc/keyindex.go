package mvcc

import (
	"slices"
	"sort"
)

// keyIndex is the life of one key: the revisions that touched it, cut into generations. A generation
// begins with the put that creates the key and ends with its tombstone; the last one is open while
// the key exists.
//
// An example. Put, put, delete, put, at revisions 2, 3, 4 and 6 (5 was about another key):
//
//	put 2     [2]
//	put 3     [2 3]
//	delete 4  [2 3 4†]
//	put 6     [2 3 4†] [6]         version starts again at 1, create revision is 6
//
// Read at revision 3 or 4.9…: the last change at or before it. At 3 that is version 2 of the first
// generation; at 5 it is the tombstone, so the key does not exist; at 6 it exists again.
//
// Compaction at C keeps what is needed to read at C and later: the newest change at or before C, and
// all after it. A tombstone is not needed to read, only to watch from its own revision on (etcd
// issue 18089), so it goes with the first compaction above it:
//
//	compact 3  [3 4†] [6]          2 goes: nobody can read at 2 any more
//	compact 4  [4†] [6]            4† stays: a watch may still start at 4
//	compact 5  [6]
//	compact 6  [6]
//
// Had 6 not been written, compact 5 would leave nothing and the key is forgotten altogether.
type keyIndex struct {
	key         string
	lease       int64 // that the key is attached to now, 0 for none
	generations []generation
}

// generation is one life of a key.
type generation struct {
	created      int64 // revision of the put that began it
	firstVersion int64 // version of revisions[0]; above 1 once compaction took what was before
	revisions    []Revision
	ended        bool // the last revision is the tombstone
}

// version says which version of a key to read, and all that is known about it without reading it.
type version struct {
	rev     Revision
	created int64
	number  int64
}

// put records a put at rev and returns the version it makes.
func (k *keyIndex) put(rev Revision) version {
	g := k.open()
	if g == nil {
		k.generations = append(k.generations, generation{created: rev.Main, firstVersion: 1})
		g = &k.generations[len(k.generations)-1]
	}
	g.revisions = append(g.revisions, rev)
	return g.version(len(g.revisions) - 1)
}

// tombstone records a delete at rev. The key must exist.
func (k *keyIndex) tombstone(rev Revision) {
	g := k.open()
	g.revisions = append(g.revisions, rev)
	g.ended = true
}

// restore adds what a record of the file says. Records come in the order of their revisions, but the
// first ones of a key may be missing: compaction took them.
func (k *keyIndex) restore(r *record) {
	k.lease = r.kv.Lease // 0 in a tombstone
	g := k.open()
	switch {
	case g == nil:
		k.generations = append(k.generations, generation{
			created: r.kv.CreateRevision, firstVersion: r.kv.Version,
			revisions: []Revision{r.rev}, ended: r.tombstone,
		})
	default:
		g.revisions = append(g.revisions, r.rev)
		g.ended = r.tombstone
	}
}

// open returns the generation that has not ended, or nil if the key does not exist now.
func (k *keyIndex) open() *generation {
	if n := len(k.generations); n > 0 && !k.generations[n-1].ended {
		return &k.generations[n-1]
	}
	return nil
}

// current returns the newest version; ok is false if the key does not exist now.
func (k *keyIndex) current() (v version, ok bool) {
	g := k.open()
	if g == nil {
		return version{}, false
	}
	return g.version(len(g.revisions) - 1), true
}

// at finds the version that was current at the end of transaction main; ok is false if the key did
// not exist then.
func (k *keyIndex) at(main int64) (v version, ok bool) {
	for i := len(k.generations) - 1; i >= 0; i-- {
		g := &k.generations[i]
		if g.revisions[0].Main > main {
			continue
		}
		n := g.upTo(main) - 1
		if g.ended && n == len(g.revisions)-1 {
			return version{}, false
		}
		return g.version(n), true
	}
	return version{}, false
}

// compact forgets what nobody can ask for after a compaction at main, and returns it, oldest first.
func (k *keyIndex) compact(main int64) (gone []Revision) {
	kept := k.generations[:0]
	for _, g := range k.generations {
		n := max(g.upTo(main)-1, 0) // revisions before the newest one at or before main
		if g.ended && g.revisions[len(g.revisions)-1].Main < main {
			n = len(g.revisions)
		}
		gone = append(gone, g.revisions[:n]...)
		if n == len(g.revisions) {
			continue
		}
		if n > 0 {
			g.revisions = slices.Clone(g.revisions[n:])
			g.firstVersion += int64(n)
		}
		kept = append(kept, g)
	}
	clear(k.generations[len(kept):])
	k.generations = kept
	return gone
}

// upTo counts the revisions at or before the end of transaction main.
func (g *generation) upTo(main int64) int {
	if n := len(g.revisions); g.revisions[n-1].Main <= main { // most reads are of what is newest
		return n
	}
	return sort.Search(len(g.revisions), func(i int) bool { return g.revisions[i].Main > main })
}

func (g *generation) version(i int) version {
	return version{rev: g.revisions[i], created: g.created, number: g.firstVersion + int64(i)}
}
