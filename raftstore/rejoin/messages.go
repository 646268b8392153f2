package rejoin

import (
	"context"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// Run passes messages from a transport's consumer on to raft until the context ends, one at a time, in
// order. A transport that wants the guard returns out from its Consumer method. out need not be buffered.
func (g *Guard) Run(ctx context.Context, in <-chan raft.RPC, out chan<- raft.RPC) {
	for {
		select {
		case rpc := <-in:
			g.pass(ctx, rpc, out)
		case <-ctx.Done():
			return
		}
	}
}

func (g *Guard) pass(ctx context.Context, rpc raft.RPC, out chan<- raft.RPC) {
	switch req := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		rpc.Command = g.correct(req)
		send(ctx, rpc, out)
	case *raft.InstallSnapshotRequest:
		g.install(ctx, rpc, req, out)
	default:
		send(ctx, rpc, out)
	}
}

// send drops the message at the end, as raft does with those that wait when it is shut down.
func send(ctx context.Context, rpc raft.RPC, out chan<- raft.RPC) {
	select {
	case out <- rpc:
	case <-ctx.Done():
	}
}

// correct returns the request as raft should see it. The original may be the sender's own.
func (g *Guard) correct(req *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	corrected := *req
	last := req.PrevLogEntry
	if n := len(req.Entries); n > 0 {
		last = req.Entries[n-1].Index
	}
	corrected.LeaderCommitIndex = min(req.LeaderCommitIndex, last)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.installed.index > 0 && g.installed == (position{req.PrevLogEntry, req.PrevLogTerm}) {
		corrected.PrevLogEntry, corrected.PrevLogTerm = 0, 0
	}
	return &corrected
}

// install lets raft install a snapshot, unless the member has all of it.
func (g *Guard) install(ctx context.Context, rpc raft.RPC, req *raft.InstallSnapshotRequest, out chan<- raft.RPC) {
	last := position{req.LastLogIndex, req.LastLogTerm}
	has, err := g.has(last)
	switch {
	case err != nil:
		discard(rpc)
		rpc.Respond(nil, fmt.Errorf("look for the snapshot's last entry: %w", err))
	case has:
		discard(rpc)
		rpc.Respond(g.heartbeat(ctx, req, out))
	default:
		rpc.Respond(g.forward(ctx, rpc, last, out))
	}
}

// discard reads what the sender sends in any case: on its connection the answer comes after it.
func discard(rpc raft.RPC) { _, _ = io.Copy(io.Discard, rpc.Reader) }

// heartbeat answers for a snapshot that brings nothing. Raft still sees that there is a leader, and
// judges its term.
func (g *Guard) heartbeat(ctx context.Context, req *raft.InstallSnapshotRequest, out chan<- raft.RPC) (any, error) {
	command := &raft.AppendEntriesRequest{RPCHeader: req.RPCHeader, Term: req.Term, Leader: req.Leader}
	answer, err := ask(ctx, raft.RPC{Command: command}, out)
	resp, ok := answer.(*raft.AppendEntriesResponse)
	if err != nil || !ok {
		return nil, err
	}
	return &raft.InstallSnapshotResponse{RPCHeader: resp.RPCHeader, Term: resp.Term, Success: resp.Success}, nil
}

// forward lets raft install a snapshot that ends with last.
func (g *Guard) forward(ctx context.Context, rpc raft.RPC, last position, out chan<- raft.RPC) (any, error) {
	g.mu.Lock()
	g.installing = last.index
	g.mu.Unlock()
	answer, err := ask(ctx, rpc, out)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.installing = 0
	if resp, ok := answer.(*raft.InstallSnapshotResponse); ok && err == nil && resp.Success {
		g.installed = last
	}
	return answer, err
}

// ask sends a message to raft and waits for the answer.
func ask(ctx context.Context, rpc raft.RPC, out chan<- raft.RPC) (any, error) {
	answers := make(chan raft.RPCResponse, 1)
	rpc.RespChan = answers
	send(ctx, rpc, out)
	select {
	case answer := <-answers:
		return answer.Response, answer.Error
	case <-ctx.Done():
		return nil, raft.ErrRaftShutdown
	}
}
