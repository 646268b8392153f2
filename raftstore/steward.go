package raftstore

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// The steward looks after the members while this one leads: learners that have caught up get their vote, and
// members that do not answer are reported.
//
// hashicorp/raft-autopilot would do the same and some more (zones, versions, removal of dead servers by
// itself, which is not wanted here: two members down for an hour would be two removed). It asks for a
// delegate that knows servers and their health by its own means, which is most of what is below; so the
// rule itself is all that was left to write.

const (
	stewardInterval = time.Second
	// deadAfter is how long a member has to be silent to be reported.
	deadAfter = 10 * time.Second
)

// silence is since when a member has not answered, and whether that was reported.
type silence struct {
	since    time.Time
	reported bool
}

// watchOver is the steward's goroutine.
func (m *Member) watchOver(ctx context.Context) {
	silent := map[raft.ServerID]*silence{}
	for pause(ctx, stewardInterval) {
		if m.raft.State() != raft.Leader {
			clear(silent)
			continue
		}
		answers := m.askAll(ctx, m.servers())
		m.reportDead(silent, answers)
		m.promoteLearners(ctx, answers)
		m.tidyNotes(ctx)
	}
}

func (m *Member) reportDead(silent map[raft.ServerID]*silence, answers []MemberStatus) {
	for _, a := range answers {
		id := raft.ServerID(a.ID)
		s := silent[id]
		switch {
		case a.Err == nil:
			if s != nil && s.reported {
				m.cfg.Log.Info("member answers again", "id", id)
			}
			delete(silent, id)
		case s == nil:
			silent[id] = &silence{since: time.Now()}
		case !s.reported && time.Since(s.since) >= deadAfter:
			s.reported = true
			m.cfg.Log.Warn("member does not answer: start it again, or remove it if it is lost", "id", id, "address", a.Address, "err", a.Err)
		}
	}
}

// promoteLearners gives those learners their vote that answered, that have caught up, and that are not to stay
// learners. PromoteMember looks again, so it need not be exact here.
func (m *Member) promoteLearners(ctx context.Context, answers []MemberStatus) {
	for _, a := range answers {
		if !a.Learner || a.Err != nil || m.store.Note(learnerNotes+a.ID) != nil {
			continue
		}
		if a.Status.Store.Applied+catchUpEntries < m.raft.CommitIndex() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
		err := m.makeChange(ctx, change{kind: changePromote, id: a.ID})
		cancel()
		if err != nil {
			m.cfg.Log.Debug("learner not promoted yet", "id", a.ID, "err", err)
		}
	}
}

// tidyNotes removes the notes of members that are gone; RecoverQuorum, for one, leaves some.
func (m *Member) tidyNotes(ctx context.Context) {
	if m.changes.take(ctx) != nil {
		return
	}
	defer m.changes.pass()
	servers := m.servers()
	for _, n := range m.store.Notes("") {
		id := n.Name[strings.LastIndex(n.Name, "/")+1:]
		if _, ok := serverByID(servers, id); ok {
			continue
		}
		if err := m.note(ctx, n.Name, nil); err != nil {
			return // another leader, or this one later
		}
	}
}

// pause waits for d, and returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
