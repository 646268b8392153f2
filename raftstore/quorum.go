package raftstore

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"
)

// quorumTimeout bounds how long a leader asks whether it is one. Raft makes it step down by itself
// when it has not heard of a majority for leaderLeaseTimeout.
const quorumTimeout = leaderLeaseTimeout

// quorum asks the members for their terms.
//
// A leader of a later term was elected by a majority, each of which raised its term before it gave its
// vote. Any two majorities have a member in common. So if a majority answers with terms up to T, no
// leader after T was elected before the question was asked, let alone acknowledged a write.
//
// Raft's own VerifyLeader is not used. It counts the answer to any heartbeat that comes in after it
// was called, one that was sent long before, too; a leader that was cut off in that moment takes it for
// a confirmation. And it goes through raft's main loop, where it waits for log writes.
type quorum struct {
	raft    *raft.Raft
	self    raft.ServerID
	forward *forwarder
}

// confirm returns nil if this member led in term when the call began.
func (q *quorum) confirm(term uint64) error {
	others, needed := q.voters()
	ctx, cancel := context.WithTimeout(context.Background(), quorumTimeout)
	defer cancel() // lets the questions that are not needed any more go
	answers := make(chan error, len(others))
	for _, address := range others {
		go func() { answers <- q.ask(ctx, address, term) }()
	}
	var refusal error
	for open := len(others); needed > 0; open-- {
		if open < needed {
			return fmt.Errorf("%w: %w", ErrNotLeader, refusal)
		}
		if err := <-answers; err == nil {
			needed--
		} else {
			refusal = err
		}
	}
	// The term did not change, so this member led in it from before to now.
	if q.raft.CurrentTerm() != term || q.raft.State() != raft.Leader {
		return ErrNotLeader
	}
	return nil
}

// voters returns the addresses of the other voters, and how many of them make a majority with this member.
func (q *quorum) voters() (others []string, needed int) {
	n := 0
	for _, s := range q.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		n++
		if s.ID != q.self {
			others = append(others, string(s.Address))
		}
	}
	return others, n/2 + 1 - (n - len(others))
}

// ask returns nil if the member at address has a term up to term.
func (q *quorum) ask(ctx context.Context, address string, term uint64) error {
	theirs, err := q.forward.term(ctx, address)
	if err == nil && theirs > term {
		err = fmt.Errorf("member at %s is in term %d, after %d", address, theirs, term)
	}
	return err
}
