package kvtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// watch watches the keys of the test, unless the request names others.
func (s suite) watch(req mvcc.WatchRequest) <-chan mvcc.WatchBatch {
	if req.Key == nil {
		req.Key, req.End = s.key(""), s.end()
	}
	return s.store.Watch(s.Context(), req)
}

// next waits for a batch of a watch.
func (s suite) next(batches <-chan mvcc.WatchBatch) mvcc.WatchBatch {
	s.Helper()
	select {
	case batch, ok := <-batches:
		require.True(s, ok, "the watch ended without a reason")
		return batch
	case <-time.After(patience):
		require.Fail(s, "no batch")
		panic("unreachable")
	}
}

// until gathers the events of a watch up to a revision, and checks what every batch must keep.
func (s suite) until(batches <-chan mvcc.WatchBatch, revision int64) []mvcc.Event {
	s.Helper()
	var events []mvcc.Event
	for last := int64(0); last < revision; {
		batch := s.next(batches)
		require.NoError(s, batch.Err)
		require.GreaterOrEqual(s, batch.Revision, last, "batches are in order")
		for _, event := range batch.Events {
			require.Greater(s, event.KV.ModRevision, last, "a revision is split over batches, or comes twice")
			require.LessOrEqual(s, event.KV.ModRevision, batch.Revision)
		}
		events, last = append(events, batch.Events...), batch.Revision
	}
	return events
}

// words describes events as "+a=1" and "-a", with "(was=0)" if they carry the version before, one
// revision in each string.
func (s suite) words(events []mvcc.Event) []string {
	var out []string
	var at int64
	for _, e := range events {
		name := strings.TrimPrefix(string(e.KV.Key), s.prefix)
		word := fmt.Sprintf("+%s=%s", name, e.KV.Value)
		if e.Type == mvcc.DeleteEvent {
			word = "-" + name
		}
		if e.PrevKV != nil {
			word += fmt.Sprintf("(was=%s)", e.PrevKV.Value)
		}
		if e.KV.ModRevision == at {
			out[len(out)-1] += " " + word
			continue
		}
		out, at = append(out, word), e.KV.ModRevision
	}
	return out
}

func (s suite) watchPast() {
	first := s.txn(s.put("a", "1"), s.put("b", "1")).Revision
	s.txn(s.put("a", "2"))
	s.txn(s.del("b"), s.put("c", "1"))
	last := s.txn(s.put("a", "3")).Revision
	events := s.until(s.watch(mvcc.WatchRequest{StartRevision: first}), last)
	require.Equal(s, []string{"+a=1 +b=1", "+a=2", "-b +c=1", "+a=3"}, s.words(events))
	require.Equal(s, mvcc.KeyValue{Key: s.key("b"), ModRevision: first + 2}, events[3].KV, "what a delete carries")
	put := events[2].KV
	require.Equal(s, []int64{first, first + 1, 2}, []int64{put.CreateRevision, put.ModRevision, put.Version})

	one := s.watch(mvcc.WatchRequest{Key: s.key("a"), StartRevision: first + 1})
	require.Equal(s, []string{"+a=2", "+a=3"}, s.words(s.until(one, last)))
	every := s.watch(mvcc.WatchRequest{Key: []byte{0}, End: []byte{0}, StartRevision: last})
	require.Equal(s, []string{"+a=3"}, s.words(s.until(every, last)))
}

func (s suite) watchNow() {
	s.txn(s.put("a", "1"))
	now := s.watch(mvcc.WatchRequest{})
	future := s.watch(mvcc.WatchRequest{StartRevision: s.revision() + 2})
	s.txn(s.put("a", "2"))
	last := s.txn(s.put("a", "3")).Revision
	require.Equal(s, []string{"+a=2", "+a=3"}, s.words(s.until(now, last)))
	require.Equal(s, []string{"+a=3"}, s.words(s.until(future, last)))
	last = s.txn(s.put("a", "4")).Revision
	require.Equal(s, []string{"+a=4"}, s.words(s.until(now, last)))
}

func (s suite) watchPrevious() {
	first := s.txn(s.put("a", "1"), s.put("b", "1")).Revision
	s.txn(s.put("a", "2"), s.del("b"))
	last := s.txn(s.put("b", "2"), s.del("a")).Revision
	full := s.watch(mvcc.WatchRequest{StartRevision: first, PrevKV: true})
	require.Equal(s, []string{"+a=1 +b=1", "+a=2(was=1) -b(was=1)", "+b=2 -a(was=2)"}, s.words(s.until(full, last)))
	puts := s.watch(mvcc.WatchRequest{StartRevision: first, NoDelete: true})
	require.Equal(s, []string{"+a=1 +b=1", "+a=2", "+b=2"}, s.words(s.until(puts, last)))
	deletes := s.watch(mvcc.WatchRequest{StartRevision: first, NoPut: true})
	require.Equal(s, []string{"-b", "-a"}, s.words(s.until(deletes, last)))
}

// watchCatchUp reads more revisions than etcd packs into one response (1000), of several keys each,
// while more are written.
func (s suite) watchCatchUp() {
	const revisions, keys = 1500, 8
	write := func(i int) int64 {
		var ops []mvcc.Op
		for k := range keys {
			ops = append(ops, s.put(fmt.Sprint(k), fmt.Sprint(i)))
		}
		return s.txn(ops...).Revision
	}
	first := write(0)
	for i := 1; i < revisions; i++ {
		write(i)
	}
	batches := s.watch(mvcc.WatchRequest{StartRevision: first, PrevKV: true, Progress: true})
	var last int64
	for i := revisions; i < revisions+100; i++ {
		last = write(i)
	}
	words := s.words(s.until(batches, last))
	require.Len(s, words, revisions+100)
	for i, word := range words {
		require.Equal(s, keys, strings.Count(word, fmt.Sprintf("=%d", i)+map[bool]string{true: "(", false: ""}[i > 0]), word)
	}
}

// watchSlow: 40 MiB of events wait for a receiver that does not take them, and other watches go on.
func (s suite) watchSlow() {
	value := strings.Repeat("x", 400<<10)
	slow := s.watch(mvcc.WatchRequest{Progress: true})
	quick := s.watch(mvcc.WatchRequest{})
	var last int64
	for i := range 100 {
		last = s.txn(s.put("a", fmt.Sprint(i, value))).Revision
		s.until(quick, last)
	}
	require.Len(s, s.until(slow, last), 100)
}

// watchProgress: a watch of keys that nothing happens to comes along with the store, at once if somebody
// has asked for the revision, and never ahead of events.
func (s suite) watchProgress() {
	quiet := s.watch(mvcc.WatchRequest{Key: s.key("quiet"), StartRevision: s.revision() + 1, Progress: true})
	for range 20 {
		s.txn(s.put("other", ""))
		require.Empty(s, s.until(quiet, s.revision()))
	}
	at := s.txn(s.put("quiet", "1")).Revision
	s.txn(s.put("other", ""))
	require.Equal(s, []string{"+quiet=1"}, s.words(s.until(quiet, s.revision())))
	history := s.watch(mvcc.WatchRequest{Key: s.key("quiet"), StartRevision: at - 5, Progress: true})
	require.Equal(s, []string{"+quiet=1"}, s.words(s.until(history, s.revision())))
	fresh := s.watch(mvcc.WatchRequest{StartRevision: s.revision() + 1, Progress: true})
	require.Empty(s, s.until(fresh, s.revision()), "a watch of a store in which nothing has happened since")
}

func (s suite) watchCompacted() {
	first := s.txn(s.put("a", "1"), s.put("b", "1")).Revision
	second := s.txn(s.put("a", "2"), s.del("b")).Revision
	last := s.txn(s.put("a", "3")).Revision
	require.NoError(s, s.store.Compact(s.Context(), second))
	for _, req := range []mvcc.WatchRequest{
		{StartRevision: first},
		{StartRevision: first, Progress: true},
		{StartRevision: second, PrevKV: true},
	} {
		batches := s.watch(req)
		batch := s.next(batches)
		for batch.Err == nil {
			require.Less(s, batch.Revision, req.StartRevision)
			require.Empty(s, batch.Events)
			batch = s.next(batches)
		}
		require.ErrorIs(s, batch.Err, mvcc.ErrCompacted)
		require.Equal(s, second, batch.CompactRevision)
		_, more := <-batches
		require.False(s, more)
	}
	at := s.watch(mvcc.WatchRequest{StartRevision: second})
	require.Equal(s, []string{"+a=2 -b", "+a=3"}, s.words(s.until(at, last)))
	partial := s.watch(mvcc.WatchRequest{StartRevision: second, PrevKV: true, PartialPrevKV: true})
	require.Equal(s, []string{"+a=2 -b", "+a=3(was=2)"}, s.words(s.until(partial, last)))
}

func (s suite) watchEnds() {
	ctx, cancel := context.WithCancel(s.Context())
	batches := s.store.Watch(ctx, mvcc.WatchRequest{Key: s.key(""), End: s.end(), Progress: true})
	last := s.txn(s.put("a", "")).Revision
	s.until(batches, last)
	cancel()
	for {
		select {
		case batch, ok := <-batches:
			if !ok {
				return
			}
			require.NoError(s, batch.Err)
		case <-time.After(patience):
			require.Fail(s, "the watch goes on")
		}
	}
}
