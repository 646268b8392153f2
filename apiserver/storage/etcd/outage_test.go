package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/etcdtest"
	"kontiki/mvcc"
	"kontiki/raftstore"
)

// patience is how long something may take that ought to happen soon.
const patience = time.Minute

func put(key string) mvcc.TxnRequest {
	return mvcc.TxnRequest{Then: []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte(key)}}}}
}

// version is how often a key was put.
func version(t *testing.T, store *etcd.Store, key string) int64 {
	result, err := store.Range(t.Context(), mvcc.RangeRequest{Key: []byte(key)})
	require.NoError(t, err)
	if len(result.KVs) == 0 {
		return 0
	}
	return result.KVs[0].Version
}

func openURL(t *testing.T, config etcd.Config) *etcd.Store {
	store, err := etcd.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// The answer to a write is lost with the connection, or comes too late: the write has happened, once.
func TestLostAnswer(t *testing.T) {
	e := etcdtest.Start(t)
	store, witness := openAt(t, e), openURL(t, etcd.Config{Endpoints: []string{e.DirectURL()}})
	_, err := store.Revision(t.Context())
	require.NoError(t, err)
	for name, lose := range map[string]func(cancel func()){
		"cut":    func(func()) { e.Cut() },
		"cancel": func(cancel func()) { cancel(); e.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e.Mute()
			failed := make(chan error, 1)
			go func() {
				_, err := store.Txn(ctx, put(name))
				failed <- err
			}()
			require.Eventually(t, func() bool { return version(t, witness, name) == 1 }, patience, time.Millisecond)
			lose(cancel)
			require.ErrorIs(t, <-failed, raftstore.ErrUnknownOutcome)
			require.EqualValues(t, 1, version(t, store, name), "sent again")
		})
	}
}

// Nobody is there: reads and writes fail clearly, and the writes have not happened.
func TestNobodyThere(t *testing.T) {
	e := etcdtest.Start(t)
	store := openURL(t, etcd.Config{Endpoints: []string{e.URL()}, RequestTimeout: 300 * time.Millisecond})
	_, err := store.Txn(t.Context(), put("before"))
	require.NoError(t, err)
	e.Down()
	for range 2 {
		_, err = store.Revision(t.Context())
		require.ErrorIs(t, err, raftstore.ErrNoLeader)
		require.ErrorContains(t, err, "etcd at "+e.URL()+" cannot answer: ")
		_, err = store.Txn(t.Context(), put("during"))
		require.ErrorIs(t, err, raftstore.ErrNoLeader)
		require.NotErrorIs(t, err, raftstore.ErrUnknownOutcome)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, store.WaitReady(ctx), context.DeadlineExceeded)
	batch := <-store.Watch(t.Context(), mvcc.WatchRequest{Key: []byte("before"), StartRevision: 1})
	require.ErrorIs(t, batch.Err, raftstore.ErrNoLeader)

	e.Up()
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, store.WaitReady(ctx))
	require.EqualValues(t, 1, version(t, store, "before"))
	require.Zero(t, version(t, store, "during"))
}

func TestCloseEndsWatches(t *testing.T) {
	e := etcdtest.Start(t)
	store, err := etcd.Open(etcd.Config{Endpoints: []string{e.URL()}})
	require.NoError(t, err)
	watch := func() <-chan mvcc.WatchBatch {
		return store.Watch(t.Context(), mvcc.WatchRequest{Key: []byte("k"), StartRevision: 1, Progress: true})
	}
	waiting, full := watch(), watch() // nobody takes from full
	for range 3 {
		result, err := store.Txn(t.Context(), put("k"))
		require.NoError(t, err)
		for batch := range waiting {
			require.NoError(t, batch.Err)
			if batch.Revision >= result.Revision {
				break
			}
		}
	}
	require.NoError(t, store.Close())
	for _, batches := range []<-chan mvcc.WatchBatch{waiting, full, watch()} {
		batch := <-batches
		require.ErrorIs(t, batch.Err, raftstore.ErrClosed)
		_, more := <-batches
		require.False(t, more)
	}
	_, err = store.Revision(t.Context())
	require.ErrorIs(t, err, raftstore.ErrClosed)
	_, err = store.Txn(t.Context(), put("k"))
	require.ErrorIs(t, err, raftstore.ErrClosed)
}

// Connections break, the network goes and comes back, and so does etcd itself, while somebody writes and
// somebody watches. What was acknowledged is there, what was refused is not, and the watch, resumed
// from where it was each time, sees each revision once.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	e := etcdtest.Start(t)
	store := openURL(t, etcd.Config{Endpoints: []string{e.URL()}, RequestTimeout: 500 * time.Millisecond})
	first, err := store.Revision(t.Context())
	require.NoError(t, err)
	seen := make(chan map[string]int64, 1)
	go func() { seen <- follow(t.Context(), store, first+1, "end") }()

	outcome := map[string]error{}
	write := func(n int) {
		for range n {
			key := fmt.Sprintf("key-%04d", len(outcome))
			_, outcome[key] = store.Txn(t.Context(), put(key))
		}
	}
	for range 5 {
		write(20)
		cut := make(chan struct{})
		go func() { defer close(cut); e.Cut() }()
		write(20)
		<-cut
		e.Down()
		write(2)
		e.Up()
		write(20)
	}
	e.Stop()
	write(2)
	e.Start()
	require.NoError(t, store.WaitReady(t.Context()))
	write(20)
	require.Eventually(t, func() bool { _, err := store.Txn(t.Context(), put("end")); return err == nil }, patience, time.Millisecond)

	events := <-seen
	acknowledged := 0
	for key, err := range outcome {
		switch {
		case err == nil:
			acknowledged++
			require.EqualValues(t, 1, version(t, store, key), key)
		case errors.Is(err, raftstore.ErrUnknownOutcome):
			require.LessOrEqual(t, version(t, store, key), int64(1), key)
		default:
			require.ErrorIs(t, err, raftstore.ErrNoLeader)
			require.Zero(t, version(t, store, key), key)
		}
		require.Equal(t, version(t, store, key), events[key], "events of %s", key)
	}
	require.Greater(t, acknowledged, 100)
}

// follow watches everything from a revision until it sees the key end, and counts the events of each key.
func follow(ctx context.Context, store *etcd.Store, next int64, end string) map[string]int64 {
	events := map[string]int64{}
	for ctx.Err() == nil {
		batches := store.Watch(ctx, mvcc.WatchRequest{Key: []byte{0}, End: []byte{0}, StartRevision: next, Progress: true})
		for batch := range batches {
			if batch.Err != nil {
				continue // watch again
			}
			for _, event := range batch.Events {
				events[string(event.KV.Key)]++
			}
			next = batch.Revision + 1
			if events[end] > 0 {
				return events
			}
		}
	}
	return events
}
