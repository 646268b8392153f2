package raftstore

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// A member that was removed while it was away has an old configuration that still lists it. It hears
// from no leader, so it campaigns. The others refuse it a vote, before it can raise anybody's term
// (pre-vote; Raft thesis 9.6), so it disturbs nobody; but it would try for ever. So a member without a leader asks the others
// whether it is still one of them. Only a leader that has made sure that it leads, and has no change of
// membership under way, may say no.

// orphanInterval is how often a member without a leader asks.
const orphanInterval = 2 * time.Second

// Removed is closed when this member has learned that it is not a member of the cluster: not any more, or not let in. It
// does not take part then, and its requests get the error of Excluded; all that is left to do is Close.
func (m *Member) Removed() <-chan struct{} { return m.removed }

// Excluded says why Removed is closed: ErrRemoved or ErrNotLetIn. Before, it is nil.
func (m *Member) Excluded() error {
	select {
	case <-m.removed:
		return m.excluded
	default:
		return nil
	}
}

// exclude ends this member's part in the cluster.
func (m *Member) exclude(err error) {
	m.exclusion.Do(func() {
		m.excluded = err
		close(m.removed)
		m.guard.Close() // raft may stand still
		m.stopGroup()
	})
}

// watchMembership is a goroutine: it finds out when this member was removed.
func (m *Member) watchMembership(ctx context.Context) {
	for pause(ctx, orphanInterval) {
		if m.wasRemoved(ctx) {
			m.cfg.Log.Error("this member was removed from the cluster: it stops. To join again it needs an empty data directory", "id", m.cfg.NodeID)
			m.exclude(ErrRemoved)
			if err := m.raft.Shutdown().Error(); err != nil {
				m.cfg.Log.Error("raft did not stop", "err", err)
			}
			return
		}
	}
}

func (m *Member) wasRemoved(ctx context.Context) bool {
	if _, id := m.raft.LeaderWithID(); id != "" || m.joining.Load() {
		return false
	}
	others := m.others()
	ctx, cancel := context.WithTimeout(ctx, orphanInterval)
	defer cancel()
	answers := make(chan error, len(others))
	for _, address := range others {
		go func() { answers <- m.forwarder.askMembership(ctx, address, m.cfg.NodeID) }()
	}
	for range others {
		if errors.Is(<-answers, ErrRemoved) {
			return true
		}
	}
	return false
}

// others are the addresses of the other members; of those that have let it in while it has heard from no leader yet, and
// perhaps never will, because it was removed before.
func (m *Member) others() (addresses []string) {
	servers := m.servers()
	if len(servers) == 0 {
		return m.cfg.Join
	}
	for _, s := range servers {
		if s.ID != m.raftID() {
			addresses = append(addresses, string(s.Address))
		}
	}
	return addresses
}

// askMembership asks the member at address whether id is a member. ErrRemoved is the leader's no.
func (f *forwarder) askMembership(ctx context.Context, address, id string) error {
	var e encoder
	e.string(id)
	_, err := f.call(ctx, address, frameMembership, e.b)
	return err
}

// membership answers askMembership.
func (s *server) membership(ctx context.Context, body []byte) error {
	d := decoder{b: body}
	id := d.string()
	if err := d.end(); err != nil {
		return err
	}
	m := s.member
	if m.raft.State() != raft.Leader {
		return ErrNotLeader
	}
	// No change of this leader's is under way; readIndex sees to those of earlier ones.
	if err := m.changes.take(ctx); err != nil {
		return err
	}
	defer m.changes.pass()
	if _, err := m.readIndex.get(ctx); err != nil {
		return err
	}
	if _, ok := serverByID(m.servers(), id); !ok {
		return ErrRemoved
	}
	return nil
}
