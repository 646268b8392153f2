package main

import (
	"context"
	"fmt"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// ownFront calls a Kontiki member in this process, as the API server does.
type ownFront struct{ member *raftstore.Member }

func (f ownFront) Put(ctx context.Context, key string, value []byte) error {
	_, err := f.member.Txn(ctx, mvcc.TxnRequest{Then: putOp(key, value)})
	return err
}

func putOp(key string, value []byte) []mvcc.Op {
	return []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte(key), Value: value}}}
}

func (f ownFront) CAS(ctx context.Context, key string, value []byte, old int64) (int64, error) {
	res, err := f.member.Txn(ctx, mvcc.TxnRequest{
		Compare: []mvcc.Compare{{Key: []byte(key), Target: mvcc.CompareModRevision, Result: mvcc.Equal, Number: old}},
		Then:    putOp(key, value),
		Else:    []mvcc.Op{{Range: &mvcc.RangeRequest{Key: []byte(key)}}},
	})
	if err == nil && !res.Succeeded {
		err = fmt.Errorf("%s is not at revision %d", key, old)
	}
	return res.Revision, err
}

func (f ownFront) Get(ctx context.Context, key string, serializable bool) error {
	return f.read(ctx, mvcc.RangeRequest{Key: []byte(key)}, serializable, 1)
}

func (f ownFront) List(ctx context.Context, key, end string, want int) error {
	return f.read(ctx, mvcc.RangeRequest{Key: []byte(key), End: []byte(end)}, false, want)
}

func (f ownFront) read(ctx context.Context, r mvcc.RangeRequest, serializable bool, want int) (err error) {
	var res mvcc.RangeResult
	if serializable {
		res, err = f.member.LocalRange(r)
	} else {
		res, err = f.member.Range(ctx, r)
	}
	if err == nil && len(res.KVs) != want {
		err = fmt.Errorf("%d keys from %q to %q", len(res.KVs), r.Key, r.End)
	}
	return err
}

func (f ownFront) Watch(ctx context.Context, key string, ready func(), event func([]byte)) error {
	out := f.member.Watch(ctx, mvcc.WatchRequest{Key: []byte(key), StartRevision: f.member.LocalRevision() + 1})
	ready()
	for b := range out {
		for _, e := range b.Events {
			event(e.KV.Value)
		}
		if b.Err != nil {
			return b.Err
		}
	}
	return ctx.Err()
}
