package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kontiki/mvcc"
)

// shiftTxn turns the distances of a transaction into revisions of one store.
func (p *pair) shiftTxn(i int, req mvcc.TxnRequest) mvcc.TxnRequest {
	out := mvcc.TxnRequest{Then: p.shiftOps(i, req.Then), Else: p.shiftOps(i, req.Else)}
	for _, c := range req.Compare {
		if c.Target == mvcc.CompareCreateRevision || c.Target == mvcc.CompareModRevision {
			c.Number = p.at(i, c.Number)
		}
		out.Compare = append(out.Compare, c)
	}
	return out
}

func (p *pair) shiftOps(i int, ops []mvcc.Op) (out []mvcc.Op) {
	for _, op := range ops {
		if op.Range != nil {
			req := p.shiftRange(i, *op.Range)
			op.Range = &req
		}
		if op.Txn != nil {
			req := p.shiftTxn(i, *op.Txn)
			op.Txn = &req
		}
		out = append(out, op)
	}
	return out
}

func (p *pair) shiftRange(i int, req mvcc.RangeRequest) mvcc.RangeRequest {
	for _, revision := range []*int64{&req.Revision, &req.MinModRevision, &req.MaxModRevision, &req.MinCreateRevision, &req.MaxCreateRevision} {
		*revision = p.at(i, *revision)
	}
	return req
}

func (p *pair) txn(t *rapid.T, req mvcc.TxnRequest) (a answers) {
	for i, store := range p.stores {
		result, err := store.Txn(t.Context(), p.shiftTxn(i, req))
		if a[i] = failure(err); err == nil {
			a[i] = fmt.Sprintf("at %d: %s", result.Revision-p.base[i], p.txnWords(i, result))
			p.newest = result.Revision - p.base[i]
		}
	}
	return a
}

func (p *pair) read(t *rapid.T, req mvcc.RangeRequest) (a answers) {
	for i, store := range p.stores {
		result, err := store.Range(t.Context(), p.shiftRange(i, req))
		if a[i] = failure(err); err == nil {
			a[i] = p.rangeWords(i, result)
		}
	}
	return a
}

func (p *pair) compact(t *rapid.T) (a answers) {
	to := rapid.Int64Range(p.compacted+1, p.newest+1).Draw(t, "to")
	if p.newest == 0 || rapid.IntRange(0, 3).Draw(t, "really") != 0 {
		t.Skip("no compaction now")
	}
	for i, store := range p.stores {
		a[i] = failure(store.Compact(t.Context(), p.at(i, to)))
	}
	if a[0] == "" {
		p.compacted = to
	}
	return a
}

// watch gathers what a watch delivers of the run from where it is not compacted.
func (p *pair) watch(t *rapid.T) (a answers) {
	if p.newest == p.compacted {
		return a
	}
	for i, store := range p.stores {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		batches := store.Watch(ctx, mvcc.WatchRequest{
			Key: []byte{0}, End: []byte{0}, StartRevision: p.at(i, p.compacted+1), PrevKV: true,
		})
		var last int64
		for batch := range batches {
			require.NoError(t, batch.Err)
			for _, e := range batch.Events {
				a[i] += fmt.Sprintf("%d %s", e.Type, p.kvWords(i, e.KV))
				if e.PrevKV != nil {
					a[i] += " was " + p.kvWords(i, *e.PrevKV)
				}
				a[i] += "\n"
			}
			if last = batch.Revision - p.base[i]; last >= p.newest {
				break
			}
		}
		cancel()
		require.Equal(t, p.newest, last, "the watch of store %d is not complete", i)
	}
	return a
}

// failure is the sentinel that an error is, "" for none.
func failure(err error) string {
	if err == nil {
		return ""
	}
	for _, sentinel := range []error{
		mvcc.ErrCompacted, mvcc.ErrFutureRevision, mvcc.ErrDuplicateKey, mvcc.ErrEmptyKey, mvcc.ErrKeyNotFound,
		mvcc.ErrValueProvided, mvcc.ErrLeaseProvided, mvcc.ErrTooManyOps, mvcc.ErrInvalidOp, mvcc.ErrLeaseNotFound,
	} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return "unknown: " + err.Error()
}

func (p *pair) kvWords(i int, kv mvcc.KeyValue) string {
	create := kv.CreateRevision
	if create != 0 {
		create -= p.base[i]
	}
	return fmt.Sprintf("%s=%q create %d mod %d version %d", strings.TrimPrefix(string(kv.Key), p.prefix), kv.Value,
		create, kv.ModRevision-p.base[i], kv.Version)
}

func (p *pair) kvsWords(i int, kvs []mvcc.KeyValue) string {
	var words []string
	for _, kv := range kvs {
		words = append(words, p.kvWords(i, kv))
	}
	return "[" + strings.Join(words, "; ") + "]"
}

func (p *pair) rangeWords(i int, r mvcc.RangeResult) string {
	return fmt.Sprintf("at %d: %d %v %s", r.Revision-p.base[i], r.Count, r.More, p.kvsWords(i, r.KVs))
}

// txnWords leaves revisions out: those of ranges and transactions inside a transaction mean nothing.
func (p *pair) txnWords(i int, r mvcc.TxnResult) string {
	words := fmt.Sprint(r.Succeeded)
	for _, op := range r.Ops {
		words += "\n"
		switch {
		case op.Range != nil:
			words += fmt.Sprintf("range %d %v %s", op.Range.Count, op.Range.More, p.kvsWords(i, op.Range.KVs))
		case op.Put != nil && op.Put.PrevKV != nil:
			words += "put over " + p.kvWords(i, *op.Put.PrevKV)
		case op.Put != nil:
			words += "put"
		case op.Delete != nil:
			words += fmt.Sprintf("deleted %d %s", op.Delete.Deleted, p.kvsWords(i, op.Delete.PrevKVs))
		case op.Txn != nil:
			words += "(" + p.txnWords(i, *op.Txn) + ")"
		}
	}
	return words
}
