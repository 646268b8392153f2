package raftstore

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A follower hears of a commit in the next AppendEntries. If nothing else is written that is an empty one, which raft
// sends after CommitTimeout, again and again, whether or not there is news: at 20 ms these took half of the CPU of three idle
// members, and a lone write was still seen 20 to 40 ms late on followers. So raft's pace is slow here, and this member, when it
// leads, sends that same message when a commit is news and nothing else has carried it within noticeAfter.

// noticeAfter is how long a commit may wait for more entries to carry the news. Under load these are never far.
const noticeAfter = 2 * time.Millisecond

// commits is where pipelines hear that the leader's commit index has grown. A nil one never has news.
type commits struct {
	mu        sync.Mutex // guards everything below; nothing is called under it
	raft      *raft.Raft // nil until it was started
	listeners map[chan struct{}]bool
}

// of says whose commits these are.
func (c *commits) of(r *raft.Raft) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raft = r
}

// listen returns a channel with room for one that has something in it after the index has grown.
func (c *commits) listen() chan struct{} {
	if c == nil {
		return nil
	}
	grown := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners == nil {
		c.listeners = map[chan struct{}]bool{}
	}
	c.listeners[grown] = true
	return grown
}

func (c *commits) forget(grown chan struct{}) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listeners, grown)
}

// grew tells those who listen. It never waits.
func (c *commits) grew() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for grown := range c.listeners {
		select {
		case grown <- struct{}{}:
		default: // it knows
		}
	}
}

// index is the commit index of the leader of term; 0 if this member does not lead in it any more. That is looked at last: a
// member that leads in a term has done so since it began, so what it read before was never another leader's.
func (c *commits) index(term uint64) uint64 {
	c.mu.Lock()
	r := c.raft
	c.mu.Unlock()
	if r == nil {
		return 0
	}
	index := r.CommitIndex()
	if r.State() != raft.Leader || r.CurrentTerm() != term {
		return 0
	}
	return index
}

// place is where a message has led a follower.
type place struct {
	message   raft.AppendEntriesRequest // without entries
	sent      time.Time
	index     uint64 // of the last entry that it has from here on
	logTerm   uint64 // and that entry's term
	committed uint64
}

// placeAfter is where req leads.
func placeAfter(req *raft.AppendEntriesRequest) place {
	p := place{message: *req, sent: time.Now(), index: req.PrevLogEntry, logTerm: req.PrevLogTerm, committed: req.LeaderCommitIndex}
	if n := len(req.Entries); n > 0 {
		p.index, p.logTerm = req.Entries[n-1].Index, req.Entries[n-1].Term
	}
	p.message.Entries = nil
	return p
}

// notice is the message that raft would send next if it had no entries; nil if it would be no news. The follower takes the
// smaller one of the commit index and the last entry it was led to (paper, figure 2): more is not said.
func (p place) notice(commit uint64) *raft.AppendEntriesRequest {
	commit = min(commit, p.index)
	if commit <= p.committed {
		return nil
	}
	req := p.message
	req.PrevLogEntry, req.PrevLogTerm, req.LeaderCommitIndex = p.index, p.logTerm, commit
	return &req
}
