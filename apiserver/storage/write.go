package storage

import (
	"context"
	"errors"
	"fmt"

	"kontiki/mvcc"
	"kontiki/watch"
)

// write is one change of one object, computed from its present version.
type write struct {
	key     string
	current *watch.Object // what it was computed from; nil: there is no object
	value   []byte        // the new version; nil deletes the object
	claims  claimsDiff
	beside  []*Beside // what is written with it
}

// lostError says that a write did not happen because what it was computed from is no longer so.
type lostError struct {
	current *watch.Object // the object as it is now; nil: there is none
	claim   *ClaimError   // set if the object is as it was, but a claim is held by another one
	beside  bool          // set if what was to be written beside it has changed; it knows the newest state then
}

func (e *lostError) Error() string { return "storage: the object has changed meanwhile" }

// commit runs the write as one transaction and returns the object it made (the last state, after a
// deletion). The error is *lostError if the condition did not hold.
func (s *Store) commit(ctx context.Context, w write) (*watch.Object, error) {
	txn, err := w.transaction()
	if err != nil {
		return nil, err
	}
	result, err := s.kv.Txn(ctx, txn)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", w.key, err)
	}
	if !result.Succeeded {
		return nil, s.lost(w, result)
	}
	s.wrote(result.Revision)
	for _, b := range w.beside {
		b.written(result.Revision)
	}
	if w.value == nil {
		return w.current.At(result.Revision), nil
	}
	created := result.Revision
	if w.current != nil {
		created = w.current.CreateRevision
	}
	return s.cache.Offer(watch.NewObject(w.key, w.value, result.Revision, created, s.codec)), nil
}

// transaction is the write on condition that the object is still the version it was computed from
// and that nobody holds the new claims. If that is not so, it reads what is there instead, which
// saves the next attempt a round trip.
func (w write) transaction() (mvcc.TxnRequest, error) {
	key := []byte(w.key)
	unchanged := mvcc.Compare{Key: key, Target: mvcc.CompareModRevision}
	if w.current != nil {
		unchanged.Number = w.current.Revision
	}
	txn := mvcc.TxnRequest{
		Compare: []mvcc.Compare{unchanged},
		Else:    []mvcc.Op{{Range: &mvcc.RangeRequest{Key: key}}},
	}
	if w.value == nil {
		txn.Then = append(txn.Then, mvcc.Op{Delete: &mvcc.DeleteRequest{Key: key}})
	} else {
		txn.Then = append(txn.Then, mvcc.Op{Put: &mvcc.PutRequest{Key: key, Value: w.value}})
	}
	for _, b := range w.beside {
		if err := b.addTo(&txn); err != nil {
			return txn, err
		}
	}
	w.claims.addTo(&txn, key)
	return txn, nil
}

// lost reads from the failed transaction what was in its way.
func (s *Store) lost(w write, result mvcc.TxnResult) *lostError {
	lost := &lostError{}
	if kvs := result.Ops[0].Range.KVs; len(kvs) > 0 {
		lost.current = s.object(kvs[0])
	}
	others := result.Ops[1:]
	for i, b := range w.beside {
		if b.lost(others[i]) {
			lost.beside = true
		}
	}
	if sameVersion(lost.current, w.current) {
		lost.claim = w.claims.blocked(others[len(w.beside):])
	}
	return lost
}

// sameVersion compares two states of one key; nil is no object.
func sameVersion(a, b *watch.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Revision == b.Revision
}

func asLost(err error) (*lostError, bool) {
	var lost *lostError
	return lost, errors.As(err, &lost)
}
