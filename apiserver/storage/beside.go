package storage

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/mvcc"
	"kontiki/watch"
)

// Beside is an update of an object that becomes part of the write of another one: both happen in one transaction, or
// neither does. So a quota's usage counts an object from the revision at which the object exists:
//
//	pods/web-1 created, resourcequotas/q used 3 → 4        revision 812
//
// From Store.Beside to End it holds the turn of its object (turns.go): those who write the same one in this server
// follow each other, and each starts from what the one before has made. What other servers do is left to the
// transaction. Whoever holds several has taken them in the order of their keys, after that of the write's own object.
type Beside struct {
	store   *Store
	key     string
	mine    *turn
	current *watch.Object // nil: there is none
	next    runtime.Object
	value   []byte // next, encoded
}

// Beside waits for the turn of an object. The caller must End what it returns.
func (s *Store) Beside(ctx context.Context, namespace, name string) (*Beside, error) {
	key, err := s.key(namespace, name)
	if err != nil {
		return nil, err
	}
	mine, err := s.turns.take(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	cached, revision, err := s.cache.Get(ctx, key)
	if err != nil {
		s.turns.pass(key, mine)
		return nil, err
	}
	return &Beside{store: s, key: key, mine: mine, current: mine.newest(cached, revision)}, nil
}

// End passes the turn.
func (b *Beside) End() { b.store.turns.pass(b.key, b.mine) }

// Object is the object as far as is known, which the transaction will judge; nil if there is none. It is shared.
func (b *Beside) Object() (runtime.Object, error) { return decoded(b.current) }

// Set says what the object becomes; nil leaves it as it is. There must be an object.
func (b *Beside) Set(next runtime.Object) { b.next = next }

// Changed says whether Set has been called.
func (b *Beside) Changed() bool { return b.next != nil }

// addTo makes the update part of a transaction, which reads what is there instead if the condition does not hold.
func (b *Beside) addTo(txn *mvcc.TxnRequest) error {
	value, err := b.store.codec.value(b.key, b.next, b.current)
	if err != nil {
		return err
	}
	key := []byte(b.key)
	b.value = value
	txn.Compare = append(txn.Compare, mvcc.Compare{Key: key, Target: mvcc.CompareModRevision, Number: b.current.Revision})
	txn.Then = append(txn.Then, mvcc.Op{Put: &mvcc.PutRequest{Key: key, Value: value}})
	txn.Else = append(txn.Else, mvcc.Op{Range: &mvcc.RangeRequest{Key: key}})
	return nil
}

// written notes that the transaction has happened.
func (b *Beside) written(revision int64) {
	b.current = b.store.cache.Offer(watch.NewObject(b.key, b.value, revision, b.current.CreateRevision, b.store.codec))
	b.store.wrote(revision)
	b.store.turns.wrote(b.mine, Result{Object: b.current})
}

// lost notes what a failed transaction has read, and reports whether that is something else than was thought.
func (b *Beside) lost(found mvcc.OpResult) bool {
	var now *watch.Object
	if kvs := found.Range.KVs; len(kvs) > 0 {
		now = b.store.object(kvs[0])
	}
	same := sameVersion(now, b.current)
	b.current = now
	return !same
}

// wrote notes a revision that this server has made of an object of the row.
func (s *Store) wrote(revision int64) {
	for known := s.written.Load(); known < revision && !s.written.CompareAndSwap(known, revision); {
		known = s.written.Load()
	}
}

// Written is a resourceVersion to read from: not older than what this server itself has written of the row. Such a read is
// served from the cache and asks nobody; it may miss what another server has written a moment ago.
func (s *Store) Written() string { return strconv.FormatInt(s.written.Load(), 10) }
