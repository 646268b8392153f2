package raftstore

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"kontiki/raftstore/rejoin"
)

// electorate is raft's transport for a member that votes only where it is known: not before its own
// configuration lists it, as voter or learner.
//
// Raft 1.8.0 grants its vote to anybody while it has no configuration ("very likely trying to bootstrap"),
// and later looks for the candidate in it, not for itself. A member with a new id and an empty disk, at
// the address of one whose disk was lost, would so vote in the name of that one, having forgotten what that
// one has acknowledged: a candidate without an acknowledged write could win. The cluster simulation found
// it. The others still know that it must be asked by its address alone, so it is for the member itself to refuse.
//
// Nobody waits for such a vote for ever: members are added as learners, which the majority that there
// was decides without them, and become voters when they have that in their log.
//
// Of the candidate, on the other hand, only its log is judged, as in the thesis (4.2.2: servers process
// requests from servers that are not in their configuration). Raft 1.8.0 refuses one that the voter's own
// configuration does not list as a voter. But a voter may lag: the others have made the candidate a voter
// without it, and then one of them is lost. What is left is a majority of which the one could not win, its log
// being shorter, and the other would never be voted for. The cluster simulation found that as well. Who was
// removed disturbs nobody: its log lacks what a majority has.
type electorate struct {
	transport
	id   raft.ServerID
	log  *slowLog      // what raft's main loop may wait for
	in   chan raft.RPC // what the guard has passed
	out  chan raft.RPC
	stop context.CancelFunc

	mu   sync.Mutex // guards raft
	raft *raft.Raft // nil until it was started
}

var _ raft.WithPreVote = (*electorate)(nil)

// newElectorate has the guard of the log (package rejoin) see messages first.
func newElectorate(t transport, id raft.ServerID, guard *rejoin.Guard) *electorate {
	ctx, stop := context.WithCancel(context.Background())
	e := &electorate{
		transport: t, id: id, log: &slowLog{Guard: guard},
		in: make(chan raft.RPC), out: make(chan raft.RPC), stop: stop,
	}
	t.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) { e.heartbeat(ctx, rpc) }) // not raft's own
	go guard.Run(ctx, t.Consumer(), e.in)
	go e.pass(ctx)
	return e
}

// of says whose configuration counts. Before, no votes are given.
func (e *electorate) of(r *raft.Raft) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.raft = r
}

// Consumer implements raft.Transport.
func (e *electorate) Consumer() <-chan raft.RPC { return e.out }

// Close implements raft.WithClose.
func (e *electorate) Close() error {
	e.stop()
	return e.transport.Close()
}

// pass hands messages on to raft, in order, until Close.
func (e *electorate) pass(ctx context.Context) {
	for {
		select {
		case rpc := <-e.in:
			if e.refuses(rpc) {
				continue
			}
			e.judgeByLog(rpc)
			select {
			case e.out <- rpc:
			case <-ctx.Done():
				rpc.Respond(nil, raft.ErrTransportShutdown)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// refuses answers requests for a vote that the member must not give.
func (e *electorate) refuses(rpc raft.RPC) bool {
	switch req := rpc.Command.(type) {
	case *raft.RequestVoteRequest:
		if !e.isMember() {
			rpc.Respond(&raft.RequestVoteResponse{RPCHeader: req.RPCHeader}, nil)
			return true
		}
	case *raft.RequestPreVoteRequest:
		if !e.isMember() {
			rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: req.RPCHeader}, nil)
			return true
		}
	}
	return false
}

// judgeByLog lets a request for a vote pass raft's look for the candidate in its configuration: raft uses the
// id for nothing else, so that of any voter will do.
func (e *electorate) judgeByLog(rpc raft.RPC) {
	switch req := rpc.Command.(type) {
	case *raft.RequestVoteRequest:
		req.ID = e.anyVoter()
	case *raft.RequestPreVoteRequest:
		req.ID = e.anyVoter()
	}
}

func (e *electorate) anyVoter() []byte {
	voter, _ := findServer(e.servers(), func(s raft.Server) bool { return s.Suffrage == raft.Voter })
	return []byte(voter.ID)
}

func (e *electorate) isMember() bool {
	_, ok := serverByID(e.servers(), string(e.id))
	return ok
}

// servers are those of the member's newest configuration; none before it was started.
func (e *electorate) servers() []raft.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.raft == nil {
		return nil
	}
	return e.raft.GetConfiguration().Configuration().Servers
}
