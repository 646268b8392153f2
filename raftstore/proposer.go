package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// proposer is group commit. Proposals wait in a queue; whenever raft has room for another entry, all
// that wait go into one. A lone writer waits for nobody, and many share the cost of a log write:
// fsync is most of what a write costs.
//
//	Txn ─┐                                     ┌► answers
//	Txn ─┼─► queue ─► pack ─► raft.Apply ─► inFlight ─► settle
//	Txn ─┘            (at most maxInFlight entries between pack and settle)
type proposer struct {
	raft     *raft.Raft
	queue    chan *proposal // bounded; a caller waits, with its context, while it is full
	inFlight chan flight    // bounded by maxInFlight
	slots    chan struct{}  // one for each entry between pack and settle
	stop     chan struct{}
	group    sync.WaitGroup
	expiry   expiry
	free     sync.Pool // of proposals that were answered: nobody has them any more
	meter    proposalMeter
}

// Bounds of group commit.
const (
	maxEntryBytes = 256 << 10 // an entry is full when it has so many bytes; one proposal may be larger
	maxInFlight   = 2         // entries handed to raft and not answered; with more, entries carry fewer proposals each
	maxQueue      = 1024      // proposals
)

// proposal is one encoded proposal on its way.
type proposal struct {
	data  []byte
	over  <-chan struct{} // closed when it is to be given up
	state atomic.Int32    // one of the states below
	done  chan outcome    // room for one
}

const (
	waiting   int32 = iota // in the queue
	taken                  // handed to raft
	withdrawn              // given up by the caller before it was taken
)

type outcome struct {
	result mvcc.Result
	err    error
}

type flight struct {
	future    raft.ApplyFuture
	proposals []*proposal
}

// newProposer makes a proposer that gives up proposals that have no outcome after a timeout.
func newProposer(r *raft.Raft, timeout time.Duration) *proposer {
	return &proposer{
		expiry:   expiry{timeout: timeout},
		raft:     r,
		queue:    make(chan *proposal, maxQueue),
		inFlight: make(chan flight, maxInFlight),
		slots:    make(chan struct{}, maxInFlight),
		stop:     make(chan struct{}),
		free:     sync.Pool{New: func() any { return &proposal{done: make(chan outcome, 1)} }},
		meter:    newProposalMeter(),
	}
}

func (p *proposer) start() {
	p.group.Go(p.pack)
	p.group.Go(p.settle)
}

// close ends the proposer. Proposals that raft has are waited for, others get ErrClosed.
func (p *proposer) close() {
	close(p.stop)
	p.group.Wait()
}

// propose hands a proposal to raft and waits for its outcome. If ctx or the timeout ends first, the error is
// ErrUnknownOutcome if raft has the proposal, and the context's if it does not. After any other error, or none, data is
// the caller's again.
func (p *proposer) propose(ctx context.Context, data []byte) (mvcc.Result, error) {
	defer p.meter.end(p.meter.begin())
	pr, err := p.enqueue(ctx, data)
	if err != nil {
		return mvcc.Result{}, err
	}
	return p.await(ctx, pr)
}

// enqueue puts a proposal into the queue. Proposals come into the log in the order of the queue, or not at all.
func (p *proposer) enqueue(ctx context.Context, data []byte) (*proposal, error) {
	pr := p.free.Get().(*proposal)
	pr.data, pr.over = data, p.expiry.next()
	select {
	case p.queue <- pr:
		return pr, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-pr.over:
		return nil, context.DeadlineExceeded
	case <-p.stop:
		return nil, ErrClosed
	}
}

// await waits for the outcome of a proposal that is in the queue.
func (p *proposer) await(ctx context.Context, pr *proposal) (mvcc.Result, error) {
	var gaveUp error
	select {
	case o := <-pr.done:
		return p.answered(pr, o)
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-pr.over:
		gaveUp = context.DeadlineExceeded
	case <-p.stop:
		gaveUp = ErrClosed
	}
	if pr.state.CompareAndSwap(waiting, withdrawn) {
		return mvcc.Result{}, gaveUp
	}
	select { // raft has it; close waits for it too
	case o := <-pr.done:
		return p.answered(pr, o)
	case <-ctx.Done():
		return mvcc.Result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
	case <-pr.over:
		return mvcc.Result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, context.DeadlineExceeded)
	}
}

func (p *proposer) answered(pr *proposal, o outcome) (mvcc.Result, error) {
	pr.data, pr.over = nil, nil
	pr.state.Store(waiting)
	p.free.Put(pr)
	return o.result, o.err
}

// pack fills entries and hands them to raft.
func (p *proposer) pack() {
	defer close(p.inFlight)
	for {
		select {
		case p.slots <- struct{}{}: // first a slot, then the proposals: more of them may come meanwhile
		case <-p.stop:
			return
		}
		select {
		case first := <-p.queue:
			p.send(p.gather(first))
		case <-p.stop:
			return
		}
	}
}

// gather takes as many waiting proposals as fit into one entry.
func (p *proposer) gather(first *proposal) (proposals []*proposal) {
	size := 0
	for pr := first; ; {
		if pr.state.CompareAndSwap(waiting, taken) {
			proposals = append(proposals, pr)
			size += len(pr.data)
		}
		if size >= maxEntryBytes {
			return proposals
		}
		select {
		case pr = <-p.queue:
		default:
			return proposals
		}
	}
}

func (p *proposer) send(proposals []*proposal) {
	if len(proposals) == 0 { // all withdrawn
		<-p.slots
		return
	}
	data := make([][]byte, len(proposals))
	for i, pr := range proposals {
		data[i] = pr.data
	}
	p.inFlight <- flight{p.raft.Apply(encodeEntry(data), 0), proposals}
}

// settle answers the callers, in the order of the log.
func (p *proposer) settle() {
	for f := range p.inFlight {
		err := proposalError(f.future.Error())
		if err != nil {
			p.meter.failed.Add(int64(len(f.proposals)))
		}
		var results []mvcc.Result
		if err == nil {
			results, _ = f.future.Response().([]mvcc.Result)
		}
		for i, pr := range f.proposals {
			o := outcome{err: err}
			if err == nil {
				o = settled(results, i)
			}
			pr.done <- o
		}
		<-p.slots
	}
}

// settled picks a proposal's result. Results are missing if the entry came into the store with a
// snapshot: it happened, but with what result is gone.
func settled(results []mvcc.Result, i int) outcome {
	if i >= len(results) {
		return outcome{err: fmt.Errorf("%w: applied by a snapshot", ErrUnknownOutcome)}
	}
	if errors.Is(results[i].Err, mvcc.ErrClosed) {
		return outcome{err: fmt.Errorf("%w: %w", ErrUnknownOutcome, results[i].Err)} // it is in the log
	}
	return outcome{result: results[i], err: results[i].Err}
}

// proposalError sorts raft's errors: those that say that the entry never got into a log, and the rest.
func proposalError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	default: // ErrLeadershipLost, ErrAbortedByRestore, ErrRaftShutdown, a failed log write
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
}
