package raftstore

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/raftstore/rejoin"
)

// A heartbeat waits behind a write to the follower's log (transport.go says why). If the write is slow, the leader
// believes that the follower is gone. With two such followers it steps down, though all are alive, and the next leader
// would have the same disks.
//
// So while a follower's main loop waits for the disk, heartbeats are answered beside it, with what is certain and
// changes nothing: "I am still in your term". It is certain because the main loop cannot leave the term before the
// write has ended; then it notes that it has heard from the leader. Heartbeats of any other term wait.
//
// A leader that asks whether it still leads, for the sake of a read, gets the truth as well: at that moment this
// member has not gone over to another.

const (
	// heartbeatPatience is how long a heartbeat waits for raft's main loop before it is answered beside it.
	heartbeatPatience = 50 * time.Millisecond
	// diskPatience is how long a member may wait for its disk before it is no better than dead.
	diskPatience = 10 * time.Second
)

// slowLog is raft's log store; it knows since when raft's main loop, the only one to append, has been waiting for it.
type slowLog struct {
	*rejoin.Guard
	mu    sync.Mutex // guards since
	since time.Time  // zero while nobody waits
}

// StoreLogs implements raft.LogStore.
func (l *slowLog) StoreLogs(entries []*raft.Log) error {
	l.waits(time.Now())
	defer l.waits(time.Time{})
	return l.Guard.StoreLogs(entries)
}

func (l *slowLog) waits(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = since
}

// isSlow says whether raft waits for the disk just now, and that is no reason to give the disk up.
func (l *slowLog) isSlow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.since.IsZero() && time.Since(l.since) < diskPatience
}

// heartbeat hands a heartbeat to raft's main loop, or answers it while that waits for the disk. It runs on the
// goroutine of the connection, which has one message at a time.
func (e *electorate) heartbeat(ctx context.Context, rpc raft.RPC) {
	patience := time.NewTicker(heartbeatPatience)
	defer patience.Stop()
	for {
		select {
		case e.out <- rpc:
			return
		case <-patience.C:
			if e.isSame(rpc) {
				return
			}
		case <-ctx.Done():
			return // the connection ends too
		}
	}
}

// isSame answers a heartbeat of the term that raft is in, if the disk keeps raft from it.
func (e *electorate) isSame(rpc raft.RPC) bool {
	req := rpc.Command.(*raft.AppendEntriesRequest)
	e.mu.Lock()
	r := e.raft
	e.mu.Unlock()
	if r == nil || !e.log.isSlow() || r.CurrentTerm() != req.Term {
		return false
	}
	rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: req.RPCHeader, Term: req.Term, Success: true}, nil)
	return true
}
