package raftstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// What a member that was a member before makes sure of when it starts: that it belongs where its operator thinks
// it does, and that the others know where it is now.

// refuseOtherCluster returns ErrOtherCluster if a member at Config.Join answers and is of another cluster: this one was
// started without Join at first, say, and is a cluster of its own. If nobody answers, as in a cold start, nothing can be
// said.
func (m *Member) refuseOtherCluster() error {
	servers := m.servers()
	if len(m.cfg.Join) == 0 || len(servers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	answers := make(chan error, len(m.cfg.Join))
	for _, address := range m.cfg.Join {
		go func() { answers <- m.sameCluster(ctx, servers, address) }()
	}
	for range m.cfg.Join {
		if err := <-answers; err != nil {
			return err
		}
	}
	return nil
}

func (m *Member) sameCluster(ctx context.Context, servers []raft.Server, address string) error {
	there, err := m.forwarder.status(ctx, address)
	if err != nil || len(there.Members) == 0 {
		return nil
	}
	if haveMet(servers, there.Members) {
		return nil
	}
	return fmt.Errorf("%w than %s", ErrOtherCluster, address)
}

// haveMet says that two configurations are of one cluster: some member is in both, and ids are never given twice. It
// need not be one of the two that have the configurations, which may be from before one of these joined.
func haveMet(here []raft.Server, there []Peer) bool {
	return slices.ContainsFunc(there, func(p Peer) bool {
		_, known := serverByID(here, p.ID)
		return known
	})
}

// tellAddress is a goroutine: a member that has moved, or was restored from a snapshot and had no address, tells the others
// where it is. They cannot reach it before, so it does not know the leader and asks all.
func (m *Member) tellAddress(ctx context.Context) {
	here := m.cfg.Network.Address()
	for {
		self, ok := serverByID(m.servers(), m.cfg.NodeID)
		if !ok || string(self.Address) == here {
			return
		}
		m.cfg.Log.Info("this member has another address now", "address", here, "before", self.Address)
		m.askToUpdate(ctx, change{kind: changeUpdate, id: m.cfg.NodeID, address: here})
		if !pause(ctx, joinRetry) {
			return
		}
	}
}

func (m *Member) askToUpdate(ctx context.Context, c change) {
	for _, s := range m.servers() {
		ctx, cancel := context.WithTimeout(ctx, min(m.cfg.RequestTimeout, 2*time.Second))
		var err error
		if s.ID == m.raftID() {
			err = m.makeChange(ctx, c)
		} else {
			err = m.forwarder.change(ctx, string(s.Address), c)
		}
		cancel()
		if err == nil {
			return
		}
		m.cfg.Log.Debug("address not told", "to", s.Address, "err", err) // only the leader takes it
	}
}
