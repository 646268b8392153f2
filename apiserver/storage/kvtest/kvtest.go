// Package kvtest says in tests what the API server relies on in a store: one suite that runs over each
// implementation of storage.KV, and one that sends two of them the same random requests and wants the
// same answers.
//
//	kvtest.Run(t, store)
//	kvtest.Same(t, one, other)
//
// The first is where to read what a KV must do; the second finds the corners that nobody thought of.
package kvtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/storage"
	"kontiki/mvcc"
)

// Store is what the suite needs of a store.
type Store interface {
	storage.KV
	Compact(ctx context.Context, revision int64) error
}

// patience is how long something may take that ought to happen at once.
const patience = 20 * time.Second

// Run runs the suite over a store. It may hold keys already; the suite leaves its own, below /kvtest/.
func Run(t *testing.T, store Store) {
	for _, test := range []struct {
		name string
		run  func(suite)
	}{
		{"a transaction writes in one revision", suite.txnIsOneRevision},
		{"compares", suite.compares},
		{"nested transactions", suite.nested},
		{"previous versions", suite.previousVersions},
		{"keep the value or the lease", suite.ignoreValue},
		{"a transaction that writes nothing", suite.readOnly},
		{"refused transactions change nothing", suite.refused},
		{"size of a transaction", suite.txnSize},
		{"ranges", suite.ranges},
		{"pages", suite.pages},
		{"order and bounds of ranges", suite.order},
		{"reads of the past", suite.past},
		{"compaction", suite.compaction},
		{"watch from the past", suite.watchPast},
		{"watch from now and from the future", suite.watchNow},
		{"watch with previous versions and filters", suite.watchPrevious},
		{"catching up never splits a revision", suite.watchCatchUp},
		{"a slow receiver misses nothing", suite.watchSlow},
		{"progress follows a read of the revision", suite.watchProgress},
		{"watch of compacted revisions", suite.watchCompacted},
		{"a watch ends with its context", suite.watchEnds},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(suite{t, store, "/kvtest/" + strings.ReplaceAll(t.Name(), " ", "-") + "/"})
		})
	}
}

// suite is one test: its keys are below prefix.
type suite struct {
	*testing.T
	store  Store
	prefix string
}

func (s suite) key(name string) []byte { return []byte(s.prefix + name) }

// end is the end of the range of all keys below prefix.
func (s suite) end() []byte { return []byte(s.prefix[:len(s.prefix)-1] + "0") }

func (s suite) put(name, value string) mvcc.Op {
	return mvcc.Op{Put: &mvcc.PutRequest{Key: s.key(name), Value: []byte(value)}}
}

func (s suite) del(name string) mvcc.Op {
	return mvcc.Op{Delete: &mvcc.DeleteRequest{Key: s.key(name)}}
}

func (s suite) get(name string) mvcc.Op {
	return mvcc.Op{Range: &mvcc.RangeRequest{Key: s.key(name)}}
}

// txn runs operations without a condition.
func (s suite) txn(ops ...mvcc.Op) mvcc.TxnResult {
	s.Helper()
	result, err := s.store.Txn(s.Context(), mvcc.TxnRequest{Then: ops})
	require.NoError(s, err)
	require.True(s, result.Succeeded)
	return result
}

func (s suite) revision() int64 {
	s.Helper()
	revision, err := s.store.Revision(s.Context())
	require.NoError(s, err)
	return revision
}

// list reads all keys of the test.
func (s suite) list(req mvcc.RangeRequest) mvcc.RangeResult {
	s.Helper()
	req.Key, req.End = s.key(""), s.end()
	result, err := s.store.Range(s.Context(), req)
	require.NoError(s, err)
	return result
}

// one reads one key at a revision; nil if it does not exist.
func (s suite) one(name string, revision int64) *mvcc.KeyValue {
	s.Helper()
	result, err := s.store.Range(s.Context(), mvcc.RangeRequest{Key: s.key(name), Revision: revision})
	require.NoError(s, err)
	if len(result.KVs) == 0 {
		require.Zero(s, result.Count)
		return nil
	}
	require.Len(s, result.KVs, 1)
	return &result.KVs[0]
}

// show words versions as "name=value", without the prefix.
func (s suite) show(kvs []mvcc.KeyValue) string {
	var out []string
	for _, kv := range kvs {
		out = append(out, fmt.Sprintf("%s=%s", strings.TrimPrefix(string(kv.Key), s.prefix), kv.Value))
	}
	return strings.Join(out, " ")
}
