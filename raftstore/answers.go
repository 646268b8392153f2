package raftstore

import (
	"errors"

	"github.com/hashicorp/raft"
)

// written waits until this member has entries up to an index on disk (leaderlog.Log.Written).
type written func(index uint64, stop <-chan struct{}) error

// hold keeps a follower's answer back until this member, the leader, has the entries that it is about on disk itself. If
// it cannot write them, it must not lead any more: raft steps down, and keeps its term, when it sees an answer of a later
// one. The result is false if stop was closed: then nobody must see the answer.
func (w written) hold(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse, stop <-chan struct{}) bool {
	if w == nil || !resp.Success || len(req.Entries) == 0 {
		return true
	}
	err := w(req.Entries[len(req.Entries)-1].Index, stop)
	if err != nil {
		resp.Success, resp.Term = false, req.Term+1
	}
	return !errors.Is(err, raft.ErrPipelineShutdown)
}

// AppendEntries implements raft.Transport.
func (t transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	err := t.NetworkTransport.AppendEntries(id, target, req, resp)
	if err == nil {
		t.written.hold(req, resp, nil)
	}
	return err
}
