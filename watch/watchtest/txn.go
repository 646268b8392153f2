package watchtest

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"kontiki/mvcc"
)

// at returns a key's version at a revision, or nil.
func (s *Store) at(key string, revision int64) *mvcc.KeyValue {
	var found *mvcc.KeyValue
	for _, e := range s.history {
		if e.KV.ModRevision > revision {
			break
		}
		if string(e.KV.Key) == key {
			found = nil
			if e.Type == mvcc.PutEvent {
				kv := e.KV
				found = &kv
			}
		}
	}
	return found
}

// state returns every key at a revision.
func (s *Store) state(revision int64) map[string]mvcc.KeyValue {
	state := map[string]mvcc.KeyValue{}
	for _, e := range s.history {
		if e.KV.ModRevision > revision {
			break
		}
		delete(state, string(e.KV.Key))
		if e.Type == mvcc.PutEvent {
			state[string(e.KV.Key)] = e.KV
		}
	}
	return state
}

func contains(start, end, key []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.Equal(start, key)
	case len(end) == 1 && end[0] == 0:
		return bytes.Compare(key, start) >= 0
	}
	return bytes.Compare(key, start) >= 0 && bytes.Compare(key, end) < 0
}

func (s *Store) rangeLocked(req mvcc.RangeRequest) (mvcc.RangeResult, error) {
	revision := req.Revision
	switch {
	case revision == 0:
		revision = s.revision
	case revision > s.revision:
		return mvcc.RangeResult{}, mvcc.ErrFutureRevision
	case revision < s.compacted:
		return mvcc.RangeResult{}, mvcc.ErrCompacted
	}
	result := mvcc.RangeResult{Revision: s.revision}
	state := s.state(revision)
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if !contains(req.Key, req.End, []byte(key)) {
			continue
		}
		result.Count++
		if req.Limit > 0 && int64(len(result.KVs)) == req.Limit {
			result.More = true
		} else if !req.CountOnly {
			result.KVs = append(result.KVs, state[key])
		}
	}
	return result, nil
}

// Txn implements storage.KV.
func (s *Store) Txn(_ context.Context, req mvcc.TxnRequest) (result mvcc.TxnResult, err error) {
	s.change(func() { result, err = s.txnLocked(req) })
	return result, err
}

// Put writes one key and returns the revision.
func (s *Store) Put(key, value string) int64 {
	return s.write(mvcc.Op{Put: &mvcc.PutRequest{Key: []byte(key), Value: []byte(value)}})
}

// Delete deletes one key and returns the revision.
func (s *Store) Delete(key string) int64 {
	return s.write(mvcc.Op{Delete: &mvcc.DeleteRequest{Key: []byte(key)}})
}

func (s *Store) write(op mvcc.Op) int64 {
	result, err := s.Txn(context.Background(), mvcc.TxnRequest{Then: []mvcc.Op{op}})
	if err != nil {
		panic(err)
	}
	return result.Revision
}

func (s *Store) txnLocked(req mvcc.TxnRequest) (mvcc.TxnResult, error) {
	before := len(s.history)
	result := s.branch(req, s.revision+1)
	if len(s.history) > before {
		s.revision++
	}
	result.Revision = s.revision
	return result, nil
}

// branch runs Then or Else, with the revision that its writes get.
func (s *Store) branch(req mvcc.TxnRequest, revision int64) mvcc.TxnResult {
	result := mvcc.TxnResult{Succeeded: true}
	for _, c := range req.Compare {
		result.Succeeded = result.Succeeded && s.holds(c)
	}
	ops := req.Then
	if !result.Succeeded {
		ops = req.Else
	}
	for _, op := range ops {
		result.Ops = append(result.Ops, s.operate(op, revision))
	}
	return result
}

// holds evaluates the comparisons that the API server makes: equality, on one key.
func (s *Store) holds(c mvcc.Compare) bool {
	kv := s.at(string(c.Key), s.revision+1)
	if kv == nil {
		kv = &mvcc.KeyValue{}
	}
	switch c.Target {
	case mvcc.CompareModRevision:
		return kv.ModRevision == c.Number
	case mvcc.CompareCreateRevision:
		return kv.CreateRevision == c.Number
	case mvcc.CompareValue:
		return kv.ModRevision != 0 && bytes.Equal(kv.Value, c.Value)
	}
	panic("watchtest: comparison not in the model")
}

func (s *Store) operate(op mvcc.Op, revision int64) mvcc.OpResult {
	switch {
	case op.Put != nil:
		return s.put(*op.Put, revision)
	case op.Delete != nil:
		return s.delete(*op.Delete, revision)
	case op.Txn != nil:
		result := s.branch(*op.Txn, revision)
		return mvcc.OpResult{Txn: &result}
	}
	result, err := s.rangeLocked(*op.Range)
	if err != nil {
		panic(err)
	}
	return mvcc.OpResult{Range: &result}
}

func (s *Store) put(req mvcc.PutRequest, revision int64) mvcc.OpResult {
	kv := mvcc.KeyValue{Key: req.Key, Value: req.Value, CreateRevision: revision, ModRevision: revision, Version: 1}
	if prev := s.at(string(req.Key), revision); prev != nil {
		kv.CreateRevision, kv.Version = prev.CreateRevision, prev.Version+1
	}
	s.history = append(s.history, mvcc.Event{Type: mvcc.PutEvent, KV: kv})
	return mvcc.OpResult{Put: &mvcc.PutResult{}}
}

func (s *Store) delete(req mvcc.DeleteRequest, revision int64) mvcc.OpResult {
	state := s.state(revision)
	var deleted int64
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if contains(req.Key, req.End, []byte(key)) {
			deleted++
			kv := mvcc.KeyValue{Key: []byte(key), ModRevision: revision}
			s.history = append(s.history, mvcc.Event{Type: mvcc.DeleteEvent, KV: kv})
		}
	}
	return mvcc.OpResult{Delete: &mvcc.DeleteResult{Deleted: deleted}}
}
