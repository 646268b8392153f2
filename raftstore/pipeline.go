package raftstore

import (
	"sync"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.NetworkTransport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	p := &pipeline{AppendPipeline: inner, written: t.written, answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
	go p.pass()
	return p, nil
}

// pipeline is one of raft's pipelines that closes itself after an answer that ends it.
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
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close implements raft.AppendPipeline.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}

// pass hands answers on, until the pipeline is closed.
func (p *pipeline) pass() {
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
