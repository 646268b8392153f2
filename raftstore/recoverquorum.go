package raftstore

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/raft"
)

// RecoverQuorum makes a member that is not running the only one of its cluster, with all that it has: for when a
// majority of the members is lost for good (RF-11). Writes that the lost members acknowledged without
// this one are lost; writes that were never acknowledged may appear. It refuses, with ErrQuorumReachable, while a majority
// answers: the members that are lost can then be removed, and nothing is at risk.
//
// The other members must never be started again with their old data: they would be a cluster of their own.
// They are emptied and join anew.
func RecoverQuorum(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	m := &Member{cfg: cfg}
	if err = m.openFiles(); err == nil {
		m.mux = newMux(m.cfg.Network, func(net.Conn) error { return ErrClosed }, func(net.Conn) {})
		m.transport = newTransport(m.mux, m.cfg, nil, nil)
		m.forwarder = newForwarder(m.mux)
		err = m.recoverQuorum(ctx)
	}
	return errors.Join(err, m.release())
}

func (m *Member) recoverQuorum(ctx context.Context) error {
	f := &fsm{store: m.store}
	current, err := raft.GetConfiguration(m.cfg.raftConfig(), f, m.log, m.log, m.snapshots, m.transport)
	if err != nil {
		return fmt.Errorf("recover: read the configuration: %w", err)
	}
	self, ok := serverByID(current.Servers, m.cfg.NodeID)
	if !ok {
		return fmt.Errorf("recover: %w: %s", ErrMemberNotFound, m.cfg.NodeID)
	}
	if err := m.refuseIfReachable(ctx, current.Servers); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	m.cfg.Log.Warn("this member becomes the only one of its cluster", "id", m.cfg.NodeID, "before", len(current.Servers))
	self.Suffrage = raft.Voter
	err = raft.RecoverCluster(m.cfg.raftConfig(), f, m.log, m.log, m.snapshots, m.transport, raft.Configuration{Servers: []raft.Server{self}})
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}

func (m *Member) refuseIfReachable(ctx context.Context, servers []raft.Server) error {
	voters, alive := 0, 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		if s.ID == m.raftID() {
			alive++ // it will be, as soon as it is started
		} else if _, err := m.ask(ctx, s); err == nil {
			alive++
		}
	}
	if alive > voters/2 && voters > 1 {
		return fmt.Errorf("%w: %d of %d", ErrQuorumReachable, alive, voters)
	}
	return nil
}
