package raftstore

import (
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// hashicorp/raft 1.8.0 asks the target of a transfer to be brought up to date through a channel with room for one
// request. If the target does not answer, the transfer times out and its request stays in the channel; the next
// transfer to it in the same term then waits for room for ever, with two goroutines, and the flag that refuses proposals
// during a transfer stays up. So no second one is begun. With the next term come new channels.

// transfers remembers whose transfers failed in a term.
type transfers struct {
	mu     sync.Mutex // guards everything below
	term   uint64
	failed map[raft.ServerID]bool // with an empty ID: one whose target raft chose
}

// anyTarget stands for the voter that raft chooses.
const anyTarget raft.ServerID = ""

// transferLeadership hands leadership over to a voter, or to the one that raft chooses. Errors wrap ErrTransferFailed.
func (m *Member) transferLeadership(to raft.ServerID, address raft.ServerAddress) error {
	if m.transfers.mayHang(m.raft.CurrentTerm(), to) {
		return fmt.Errorf("%w: an earlier one of this term has failed; there can be another when there was an election", ErrTransferFailed)
	}
	var future raft.Future
	if to == anyTarget {
		future = m.raft.LeadershipTransfer()
	} else {
		future = m.raft.LeadershipTransferToServer(to, address)
	}
	if err := future.Error(); err != nil {
		m.transfers.hasFailed(m.raft.CurrentTerm(), to)
		return fmt.Errorf("%w: %w", ErrTransferFailed, err)
	}
	return nil
}

func (t *transfers) mayHang(term uint64, to raft.ServerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term == term && (t.failed[to] || t.failed[anyTarget] || to == anyTarget && len(t.failed) > 0)
}

func (t *transfers) hasFailed(term uint64, to raft.ServerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term != term || t.failed == nil {
		t.term, t.failed = term, map[raft.ServerID]bool{}
	}
	t.failed[to] = true
}
