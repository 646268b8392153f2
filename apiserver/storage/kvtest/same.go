package kvtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kontiki/mvcc"
)

// Same sends the same random transactions, ranges and compactions to two stores and requires the same
// answers, errors included, and in the end the same events of a watch over all of it. Revisions are
// compared by their distance from where each store was at the start. Nobody else may use the stores.
func Same(t *testing.T, one, other Store) {
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		p := &pair{t: t, stores: [2]Store{one, other}, prefix: fmt.Sprintf("/same/%d/", run)}
		for i, store := range p.stores {
			var err error
			p.base[i], err = store.Revision(t.Context())
			require.NoError(t, err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"txn": func(t *rapid.T) { p.compare(t, p.txn(t, p.someTxn(t, 2))) },
			"range": func(t *rapid.T) {
				req := p.someRange(t)
				p.compare(t, p.read(t, req))
			},
			"compact": func(t *rapid.T) { p.compare(t, p.compact(t)) },
		})
		p.compare(t, p.watch(t))
	})
}

// pair is two stores, and for each the revision that the run began at.
type pair struct {
	t      *rapid.T
	stores [2]Store
	base   [2]int64
	prefix string
	// newest and compacted are distances from base.
	newest, compacted int64
}

// at makes a store's revision of a distance; 0 stays 0.
func (p *pair) at(i int, distance int64) int64 {
	if distance == 0 {
		return 0
	}
	return p.base[i] + distance
}

// answers are what the two stores said, in words.
type answers [2]string

func (p *pair) compare(t *rapid.T, a answers) {
	require.Equal(t, a[0], a[1])
}

func (p *pair) key(t *rapid.T) []byte {
	return []byte(p.prefix + rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key"))
}

func (p *pair) keys(t *rapid.T) (start, end []byte) {
	start = p.key(t)
	if rapid.IntRange(0, 2).Draw(t, "range") == 0 {
		end = p.key(t)
	}
	return start, end
}

func value(t *rapid.T) []byte {
	return []byte(rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "value"))
}

// revisions are drawn as distances and stored as such; shift makes them real.
func (p *pair) someRevision(t *rapid.T) int64 {
	return rapid.Int64Range(0, p.newest+2).Draw(t, "revision")
}

func (p *pair) someRange(t *rapid.T) mvcc.RangeRequest {
	req := mvcc.RangeRequest{
		Revision: p.someRevision(t), Limit: rapid.Int64Range(0, 3).Draw(t, "limit"),
		KeysOnly: rapid.Bool().Draw(t, "keysOnly"), CountOnly: rapid.IntRange(0, 4).Draw(t, "countOnly") == 0,
		SortBy: mvcc.SortTarget(rapid.IntRange(0, 4).Draw(t, "sortBy")), Descending: rapid.Bool().Draw(t, "descending"),
	}
	req.Key, req.End = p.keys(t)
	if rapid.IntRange(0, 3).Draw(t, "bounds") == 0 {
		req.MinModRevision, req.MaxModRevision = p.someRevision(t), p.someRevision(t)
		req.MinCreateRevision, req.MaxCreateRevision = p.someRevision(t), p.someRevision(t)
	}
	return req
}

func (p *pair) someCompare(t *rapid.T) mvcc.Compare {
	c := mvcc.Compare{
		Target: mvcc.CompareTarget(rapid.IntRange(0, 4).Draw(t, "target")), Result: mvcc.CompareResult(rapid.IntRange(0, 3).Draw(t, "relation")),
	}
	c.Key, c.End = p.keys(t)
	switch c.Target {
	case mvcc.CompareCreateRevision, mvcc.CompareModRevision:
		c.Number = p.someRevision(t)
	case mvcc.CompareValue:
		c.Value = value(t)
	default:
		c.Number = rapid.Int64Range(0, 2).Draw(t, "number")
	}
	return c
}

func (p *pair) someOp(t *rapid.T, depth int) mvcc.Op {
	kind := rapid.IntRange(0, 7).Draw(t, "op")
	switch {
	case kind == 0 && depth > 0:
		txn := p.someTxn(t, depth-1)
		return mvcc.Op{Txn: &txn}
	case kind <= 1:
		req := p.someRange(t)
		req.Revision = min(req.Revision, max(p.compacted, 0)) // mostly readable, or the transaction is refused
		return mvcc.Op{Range: &req}
	case kind <= 3:
		req := mvcc.DeleteRequest{PrevKV: rapid.Bool().Draw(t, "prevKV")}
		req.Key, req.End = p.keys(t)
		return mvcc.Op{Delete: &req}
	}
	put := mvcc.PutRequest{Key: p.key(t), Value: value(t), PrevKV: rapid.Bool().Draw(t, "prevKV")}
	if rapid.IntRange(0, 4).Draw(t, "keep") == 0 {
		put.IgnoreValue, put.Value = true, nil
	}
	return mvcc.Op{Put: &put}
}

func (p *pair) someTxn(t *rapid.T, depth int) mvcc.TxnRequest {
	ops := func(label string) (list []mvcc.Op) {
		for range rapid.IntRange(0, 3).Draw(t, label) {
			list = append(list, p.someOp(t, depth))
		}
		return list
	}
	var req mvcc.TxnRequest
	for range rapid.IntRange(0, 2).Draw(t, "compares") {
		req.Compare = append(req.Compare, p.someCompare(t))
	}
	req.Then, req.Else = ops("then"), ops("else")
	return req
}
