package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/etcdtest"
	"kontiki/mvcc"
)

// An etcd of three members, and a store that knows all three: requests and watches go to any of them, also
// to those that are behind, and go on when one is gone.
func TestThreeMembers(t *testing.T) {
	members := etcdtest.StartMembers(t, 3)
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, m.URL())
	}
	store := openURL(t, etcd.Config{Endpoints: endpoints})
	first, err := store.Revision(t.Context())
	require.NoError(t, err)
	seen := make(chan map[string]int64, 1)
	go func() { seen <- follow(t.Context(), store, first+1, "end") }()

	watches := map[int]<-chan mvcc.WatchBatch{} // of a key that is never written, at whichever members
	for i := range 6 {
		watches[i] = store.Watch(t.Context(), mvcc.WatchRequest{Key: []byte("quiet"), StartRevision: first + 1, Progress: true})
	}
	written := 0
	write := func() int64 {
		result, err := store.Txn(t.Context(), put(fmt.Sprint("k", written)))
		require.NoError(t, err)
		written++
		return result.Revision
	}
	for range 20 {
		revision := write()
		read, err := store.Range(t.Context(), mvcc.RangeRequest{Key: []byte(fmt.Sprint("k", written-1)), Revision: revision})
		require.NoError(t, err)
		require.Len(t, read.KVs, 1, "every member answers with what was acknowledged")
		newest, err := store.Revision(t.Context())
		require.NoError(t, err)
		for _, batches := range watches {
			for at := int64(0); at < newest; {
				select {
				case batch := <-batches:
					require.NoError(t, batch.Err)
					require.Empty(t, batch.Events)
					at = batch.Revision
				case <-time.After(patience):
					require.Fail(t, "no progress")
				}
			}
		}
	}
	status := store.Status(t.Context())
	require.Len(t, status.Endpoints, 3)
	for i, m := range status.Endpoints {
		if m.Leader {
			members[i].Stop() // not all at once: two are a majority
			break
		}
	}
	require.Eventually(t, func() bool { _, err := store.Txn(t.Context(), put("end")); return err == nil }, patience, time.Millisecond)
	events := <-seen
	for i := range written {
		require.EqualValues(t, 1, events[fmt.Sprint("k", i)])
	}
}
