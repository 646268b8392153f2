package raftstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// readIndex answers, on the leader, the question of every linearizable read: how far must a member
// have applied the log to have seen all writes acknowledged before the read began? (Raft thesis 6.4.)
//
// The leader acknowledges a write after applying it, so what it has applied covers every write that it
// acknowledged itself. Those of earlier leaders are in its log; a barrier, once per term, makes sure
// that they are applied. And that no later leader has acknowledged anything is what a majority says
// whose terms are no higher than the leader's (quorum.go). So, in this order: barrier, note what is
// applied, ask the majority. One round serves all reads that wait when it begins.
type readIndex struct {
	raft   *raft.Raft
	store  *mvcc.Store
	quorum *quorum
	news   *commits
	queue  chan readWaiter // bounded; a caller waits, with its context, while it is full
	stop   chan struct{}
	group  sync.WaitGroup

	barrierTerm uint64 // the term whose barrier was done; only the goroutine uses it
}

type readWaiter chan readAnswer // room for one

type readAnswer struct {
	index uint64
	err   error
}

func newReadIndex(r *raft.Raft, store *mvcc.Store, q *quorum, news *commits) *readIndex {
	x := &readIndex{raft: r, store: store, quorum: q, news: news, queue: make(chan readWaiter, maxQueue), stop: make(chan struct{})}
	x.group.Go(x.run)
	return x
}

func (x *readIndex) close() {
	close(x.stop)
	x.group.Wait()
}

// get returns the index that a read has to wait for, or ErrNotLeader.
func (x *readIndex) get(ctx context.Context) (uint64, error) {
	w := make(readWaiter, 1)
	select {
	case x.queue <- w:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-x.stop:
		return 0, ErrClosed
	}
	select {
	case a := <-w:
		return a.index, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-x.stop:
		return 0, ErrClosed
	}
}

func (x *readIndex) run() {
	for {
		select {
		case first := <-x.queue:
			waiters := x.gather(first)
			index, err := x.confirm()
			for _, w := range waiters {
				w <- readAnswer{index, err}
			}
		case <-x.stop:
			return
		}
	}
}

func (x *readIndex) gather(first readWaiter) []readWaiter {
	waiters := []readWaiter{first}
	for {
		select {
		case w := <-x.queue:
			waiters = append(waiters, w)
		default:
			return waiters
		}
	}
}

func (x *readIndex) confirm() (uint64, error) {
	term := x.raft.CurrentTerm()
	if x.raft.State() != raft.Leader {
		return 0, ErrNotLeader
	}
	if term != x.barrierTerm {
		if err := x.raft.Barrier(0).Error(); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrNotLeader, err)
		}
		x.barrierTerm = term
		x.news.grew() // followers that have to wait for what it is about, too
	}
	index := x.store.Applied()
	return index, x.quorum.confirm(term)
}
