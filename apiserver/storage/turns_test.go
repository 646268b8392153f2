package storage_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/mvcc"
	"kontiki/watch"
	"kontiki/watch/watchtest"
)

// gatedKV counts transactions, and lets none through while gate is set and open is not closed.
type gatedKV struct {
	modelKV
	mu   sync.Mutex // guards what follows
	gate chan struct{}
	txns int
}

func (g *gatedKV) Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error) {
	g.mu.Lock()
	gate := g.gate
	g.txns++
	g.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return g.modelKV.Txn(ctx, req)
}

func (g *gatedKV) close() (open func() (txns int)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate, g.txns = make(chan struct{}), 0
	return func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.gate)
		g.gate = nil
		return g.txns
	}
}

// Updates of one object that come while another is under way wait for it and start from what it made, even if the
// cache hears of nothing. So none is made in vain.
func TestUpdatesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &gatedKV{modelKV: modelKV{watchtest.New()}}
		s := newEnv(t, kv, storage.Config{}).configMaps()
		object := configMap("a", nil)
		object.Data["n"] = "0"
		created := mustCreate(t, s, object)
		synctest.Wait()
		kv.Hold()
		open := kv.close()
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, increment)
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		require.Equal(t, 1, open(), "the others wait")
		clients.Wait()
		require.Equal(t, 8, kv.txns)
		kv.Release()
		synctest.Wait()
		kv.Hold()

		// Those whose change is for a version that is no longer there are told so without a transaction.
		errStale := errors.New("stale")
		stale := func(current *watch.Object) (runtime.Object, error) {
			if current.Revision != created.Revision+8 {
				return nil, errStale
			}
			return increment(current)
		}
		open = kv.close()
		var lost sync.Map
		for i := range 8 {
			clients.Go(func() {
				_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{From: strconv.FormatInt(created.Revision+8, 10)}, stale)
				lost.Store(i, err)
			})
		}
		synctest.Wait()
		open()
		clients.Wait()
		require.Equal(t, 1, kv.txns)
		won := 0
		lost.Range(func(_, err any) bool {
			if err == nil {
				won++
			} else {
				require.ErrorIs(t, err.(error), errStale)
			}
			return true
		})
		require.Equal(t, 1, won)
		kv.Release()
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "9", got.Object().(*corev1.ConfigMap).Data["n"])
	})
}

// Who waits for a turn gives up with its context, and leaves nothing behind.
func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &gatedKV{modelKV: modelKV{watchtest.New()}}
		s := newEnv(t, kv, storage.Config{}).configMaps()
		mustCreate(t, s, configMap("a", nil))
		open := kv.close()
		var first sync.WaitGroup
		first.Go(func() {
			_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, setData("k", "1"))
			require.NoError(t, err)
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		first.Go(func() {
			_, err := s.Update(ctx, "t", "a", storage.UpdateOptions{}, setData("k", "2"))
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		open()
		first.Wait()
		mustUpdate(t, s, "a", setData("k", "3"))
	})
}

// Updates that have lost are told so one at a time: the next one when the object was written again, or when the one
// before has had its time.
func TestWhoHasLostIsToldInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &gatedKV{modelKV: modelKV{watchtest.New()}}
		s := newEnv(t, kv, storage.Config{}).configMaps()
		created := mustCreate(t, s, configMap("a", nil))
		from := strconv.FormatInt(created.Revision, 10)
		errLost := errors.New("lost")
		told := make(chan struct{}, 100)
		stale := func() {
			_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{From: from}, func(current *watch.Object) (runtime.Object, error) {
				if current.Revision != created.Revision {
					return nil, errLost
				}
				return setData("k", "1")(current)
			})
			if errors.Is(err, errLost) {
				told <- struct{}{}
			}
		}
		open := kv.close()
		var clients sync.WaitGroup
		for range 5 {
			clients.Go(stale)
		}
		synctest.Wait()
		began := time.Now()
		open()
		synctest.Wait()
		require.Len(t, told, 1, "the others wait")
		mustUpdate(t, s, "a", setData("k", "2"))
		synctest.Wait()
		require.Len(t, told, 2)
		require.Equal(t, began, time.Now())
		mustCreate(t, s, configMap("b", nil))
		mustUpdate(t, s, "b", setData("k", "2"))
		synctest.Wait()
		require.Len(t, told, 2, "another object is nothing to them")
		clients.Wait()
		require.Len(t, told, 4)
		require.Equal(t, 4*time.Millisecond, time.Since(began), "the two that were left had to wait for the one before")
	})
}

// An update that takes long to decide, with a webhook that is slow or wants to write the same object, holds nobody up for
// long: what comes meanwhile goes on beside it, and it decides once more.
func TestSlowDecisionsHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEnv(t, modelKV{watchtest.New()}, storage.Config{}).configMaps()
		object := configMap("a", nil)
		object.Data["n"] = "0"
		mustCreate(t, s, object)
		decisions := 0
		slow := func(current *watch.Object) (runtime.Object, error) {
			if decisions++; decisions == 1 {
				time.Sleep(10 * time.Second)
			}
			return increment(current)
		}
		var first sync.WaitGroup
		first.Go(func() {
			_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, slow)
			require.NoError(t, err)
		})
		synctest.Wait()
		began := time.Now()
		_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, increment)
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		first.Wait()
		require.Equal(t, 2, decisions)
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "2", got.Object().(*corev1.ConfigMap).Data["n"], "no update is lost")
	})
}
