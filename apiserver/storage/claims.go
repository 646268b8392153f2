package storage

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/mvcc"
	"kontiki/watch"
)

// An object claims what it must hold alone, such as a cluster IP, by a key of its own in the store:
//
//	/kontiki/claims/clusterip/10.96.0.17  ->  /registry/services/default/web
//
// The claim comes and goes in the transactions that write and delete the object. So there is no
// moment at which one is there without the other, and nothing has to be repaired after a crash.

// claimAttempts is how often Allocate may choose again when what it chose was taken meanwhile.
const claimAttempts = 32

// claimsDiff is what a write changes in the claims of its object.
type claimsDiff struct {
	take, release []string
}

// claims of an object; nil has none.
func (s *Store) claims(obj runtime.Object) []string {
	if obj == nil || s.row.Strategy.Claims == nil {
		return nil
	}
	return s.row.Strategy.Claims(obj)
}

// diffClaims tells what changes when old becomes next. Either may be nil.
func (s *Store) diffClaims(old, next runtime.Object) claimsDiff {
	before, after := s.claims(old), s.claims(next)
	return claimsDiff{take: without(after, before), release: without(before, after)}
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
	for _, claim := range d.take {
		key := []byte(claim)
		txn.Compare = append(txn.Compare, mvcc.Compare{Key: key, Target: mvcc.CompareModRevision})
		txn.Then = append(txn.Then, mvcc.Op{Put: &mvcc.PutRequest{Key: key, Value: holder}})
		txn.Else = append(txn.Else, mvcc.Op{Range: &mvcc.RangeRequest{Key: key}})
	}
	for _, claim := range d.release {
		key := []byte(claim)
		// Only what is ours, whatever has been done to the store by hand.
		txn.Then = append(txn.Then, mvcc.Op{Txn: &mvcc.TxnRequest{
			Compare: []mvcc.Compare{{Key: key, Target: mvcc.CompareValue, Value: holder}},
			Then:    []mvcc.Op{{Delete: &mvcc.DeleteRequest{Key: key}}},
		}})
	}
}

// blocked finds the claim that made a transaction fail; results are those of the Else that addTo added.
func (d claimsDiff) blocked(results []mvcc.OpResult) *ClaimError {
	for i, claim := range d.take {
		if kvs := results[i].Range.KVs; len(kvs) > 0 {
			return &ClaimError{Claim: claim, Holder: string(kvs[0].Value)}
		}
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
