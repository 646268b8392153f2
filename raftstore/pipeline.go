package raftstore

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.NetworkTransport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		AppendPipeline: inner, written: t.written, commits: t.commits,
		answers: make(chan raft.AppendFuture), closed: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	go p.answer()
	go p.tell()
	return p, nil
}

// pipeline is one of raft's pipelines that tells the follower of commits (notices.go), and closes itself after an answer that ends it.
//
// In raft 1.8.0, one goroutine sends entries to a follower and another reads the answers. The latter ends
// at an answer that is no success (replication.go, pipelineDecode). If the former, choosing at random
// between that news and more entries, chooses more entries, it waits for room in the pipeline, and nobody
// makes room ever again: the follower gets heartbeats and no entries for as long as the leader leads,
// and the leader's Shutdown waits for ever. The cluster simulation found it. A closed pipeline lets the
// sender go; raft then goes on without it, and makes another.
type pipeline struct {
	raft.AppendPipeline
	written written
	answers chan raft.AppendFuture
	once    sync.Once
	closed  chan struct{}
	commits *commits

	turn chan struct{} // room for one, who may send, and use last. Not a mutex: a send waits while the follower's disk does
	last place         // where the follower was led
}

// AppendEntries implements raft.AppendPipeline.
func (p *pipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if !p.take() {
		return nil, raft.ErrPipelineShutdown
	}
	defer p.pass()
	return p.send(req, resp)
}

// take waits for the turn, and is false if the pipeline was closed before.
func (p *pipeline) take() bool {
	select {
	case p.turn <- struct{}{}:
		return true
	case <-p.closed:
		return false
	}
}

func (p *pipeline) pass() { <-p.turn }

// send is AppendEntries for who has the turn.
func (p *pipeline) send(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.last = placeAfter(req)
	return p.AppendPipeline.AppendEntries(req, resp)
}

// tell sends notices, until the pipeline is closed.
func (p *pipeline) tell() {
	grown := p.commits.listen()
	defer p.commits.forget(grown)
	for {
		select {
		case <-grown:
		case <-p.closed:
			return
		}
		for wait := noticeAfter; wait > 0; wait = p.notify() {
			select {
			case <-time.After(wait):
			case <-p.closed:
				return
			}
		}
	}
}

// notify sends a notice, if there is news that nothing else carries, and returns how long to wait if that cannot be told yet.
func (p *pipeline) notify() time.Duration {
	if !p.take() {
		return 0
	}
	defer p.pass()
	notice := p.last.notice(p.commits.index(p.last.message.Term))
	if notice == nil {
		return 0
	}
	if quiet := time.Since(p.last.sent); quiet < noticeAfter {
		return noticeAfter - quiet
	}
	_, _ = p.send(notice, new(raft.AppendEntriesResponse)) // raft's own next message fails as well, and ends the pipeline
	return 0
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close implements raft.AppendPipeline.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}

// answer hands answers on, until the pipeline is closed.
func (p *pipeline) answer() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			if !p.written.hold(f.Request(), f.Response(), p.closed) {
				return
			}
			last := !f.Response().Success || f.Response().Term > f.Request().Term
			select {
			case p.answers <- f:
			case <-p.closed:
				return
			}
			if last {
				_ = p.Close() // closing a second time does nothing
				return
			}
		case <-p.closed:
			return
		}
	}
}
