package storage

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/mvcc"
	"kontiki/watch"
)

// An object claims what it must hold alone, such as a cluster IP, by a key of its own in the store:
//
//	/kontiki/claims/clusterip/10.96.0.17  ->  /registry/services/default/web
//
// A claim may have an object beside it, by which users see it:
//
//	/registry/ipaddresses/10.96.0.17  ->  the IPAddress whose parent is that Service
//
// The claim comes and goes in the transactions that write and delete the object. So there is no
// moment at which one is there without the other, and nothing has to be repaired after a crash.

// claimAttempts is how often Allocate may choose again when what it chose was taken meanwhile.
const claimAttempts = 32

// claimsDiff is what a write changes in the claims of its object.
type claimsDiff struct {
	take, release []claim
}

// claim is one key that an object holds.
type claim struct {
	key      string
	shownKey string // of the object beside it; "" if there is none
	shown    []byte // that object, to be written
}

// claims of an object; nil has none.
func (s *Store) claims(obj runtime.Object) []string {
	if obj == nil || s.row.Strategy.Claims == nil {
		return nil
	}
	return s.row.Strategy.Claims(obj)
}

// diffClaims tells what changes when old becomes next. Either may be nil.
func (s *Store) diffClaims(old, next runtime.Object) (claimsDiff, error) {
	before, after := s.claims(old), s.claims(next)
	take, err := s.shown(next, without(after, before))
	if err != nil {
		return claimsDiff{}, err
	}
	release, err := s.shown(old, without(before, after))
	return claimsDiff{take, release}, err
}

// shown adds to the claims of obj the objects by which users see them.
func (s *Store) shown(obj runtime.Object, keys []string) ([]claim, error) {
	var out []claim
	for _, key := range keys {
		c := claim{key: key}
		if show := s.row.Strategy.ShowClaim; show != nil {
			shownKey, shown := show(obj, key)
			if p, ok := shown.(protobufObject); ok {
				value, err := encodeProtobuf(p)
				if err != nil {
					return nil, fmt.Errorf("encode %s: %w", shownKey, err)
				}
				resource, _ := meta.UnsafeGuessKindToResource(p.GetObjectKind().GroupVersionKind())
				if value, err = s.config.Encryption.For(resource.GroupResource()).Seal(shownKey, value); err != nil {
					return nil, err
				}
				c.shownKey, c.shown = shownKey, value
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// without returns the elements of a that are not in b, each once.
func without(a, b []string) []string {
	var rest []string
	for _, x := range a {
		if !slices.Contains(b, x) && !slices.Contains(rest, x) {
			rest = append(rest, x)
		}
	}
	return rest
}

// addTo makes the claims part of the transaction that writes the object under holder.
func (d claimsDiff) addTo(txn *mvcc.TxnRequest, holder []byte) {
	for _, c := range d.take {
		take(txn, c.key, holder)
		if c.shownKey != "" {
			take(txn, c.shownKey, c.shown)
		}
	}
	for _, c := range d.release {
		key := []byte(c.key)
		then := []mvcc.Op{{Delete: &mvcc.DeleteRequest{Key: key}}}
		if c.shownKey != "" {
			then = append(then, mvcc.Op{Delete: &mvcc.DeleteRequest{Key: []byte(c.shownKey)}})
		}
		// Only what is ours, whatever has been done to the store by hand.
		txn.Then = append(txn.Then, mvcc.Op{Txn: &mvcc.TxnRequest{
			Compare: []mvcc.Compare{{Key: key, Target: mvcc.CompareValue, Value: holder}},
			Then:    then,
		}})
	}
}

// take puts a key that must not be there yet; if it is, the transaction reads it instead.
func take(txn *mvcc.TxnRequest, name string, value []byte) {
	key := []byte(name)
	txn.Compare = append(txn.Compare, mvcc.Compare{Key: key, Target: mvcc.CompareModRevision})
	txn.Then = append(txn.Then, mvcc.Op{Put: &mvcc.PutRequest{Key: key, Value: value}})
	txn.Else = append(txn.Else, mvcc.Op{Range: &mvcc.RangeRequest{Key: key}})
}

// blocked finds the claim that made a transaction fail; results are those of the Else that addTo added.
func (d claimsDiff) blocked(results []mvcc.OpResult) *ClaimError {
	for _, c := range d.take {
		if kvs := results[0].Range.KVs; len(kvs) > 0 {
			return &ClaimError{Claim: c.key, Holder: string(kvs[0].Value)}
		}
		results = results[1:]
		if c.shownKey == "" {
			continue
		}
		if kvs := results[0].Range.KVs; len(kvs) > 0 {
			return &ClaimError{Claim: c.key, Holder: c.shownKey}
		}
		results = results[1:]
	}
	return nil
}

// allocate lets the row's strategy choose what the server must choose for obj. What it learns is as
// of one consistent revision: a claim that was freed before the request is not reported as taken.
func (s *Store) allocate(ctx context.Context, key string, obj, old runtime.Object) error {
	if s.row.Strategy.Allocate == nil {
		return nil
	}
	probe := claimProbe{store: s, holder: key}
	err := s.row.Strategy.Allocate(ctx, obj, old, func(claim string) bool { return probe.taken(ctx, claim) })
	if probe.failure != nil {
		return fmt.Errorf("allocate for %s: %w", key, probe.failure)
	}
	return err
}

// claimProbe answers whether claims are taken, all as of one revision.
type claimProbe struct {
	store    *Store
	holder   string // whose own claims do not count
	revision int64  // 0 until the first question
	failure  error  // the first failure to read; from then on everything is reported as taken
}

func (p *claimProbe) taken(ctx context.Context, claim string) bool {
	if p.failure != nil {
		return true
	}
	result, err := p.store.kv.Range(ctx, mvcc.RangeRequest{Key: []byte(claim), Revision: p.revision})
	if err != nil {
		p.failure = err
		return true
	}
	p.revision = result.Revision
	return len(result.KVs) > 0 && string(result.KVs[0].Value) != p.holder
}

// decoded returns the object that o holds, or nil for nil.
func decoded(o *watch.Object) (runtime.Object, error) {
	if o == nil {
		return nil, nil
	}
	return o.Get()
}
