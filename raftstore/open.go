package raftstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
	"kontiki/raftstore/leaderlog"
	"kontiki/raftstore/rejoin"
)

const storeFile = "mvcc.db"

// Open starts a member. It returns as soon as the member runs, which may be before there is a
// leader: requests wait for one, and so does WaitReady.
func Open(cfg Config) (*Member, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Member{cfg: cfg, changes: newTurn(), retention: retention{keep: cfg.HistoryRetention}, closed: make(chan struct{}), removed: make(chan struct{}), counters: counters{applied: newFSMMeter()}}
	if err := m.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store member %s: %w", cfg.NodeID, err), m.abandon())
	}
	m.observeLeaders()
	m.electIfAlone()
	m.startGroup()
	return m, nil
}

func (m *Member) open() error {
	if err := m.openFiles(); err != nil {
		return err
	}
	if err := restoreIfBehind(m.store, m.snapshots); err != nil {
		return err
	}
	if err := refuseIfAhead(m.store, m.log, m.snapshots); err != nil {
		return err
	}
	if err := m.startRaft(); err != nil {
		return err
	}
	return m.refuseOtherCluster()
}

func (m *Member) openFiles() (err error) {
	if err := os.MkdirAll(m.cfg.Dir, 0o700); err != nil {
		return err
	}
	if m.log, err = openRaftFiles(m.cfg); err != nil {
		return err
	}
	if m.store, err = mvcc.Open(filepath.Join(m.cfg.Dir, storeFile), m.cfg.Store); err != nil {
		return err
	}
	if err := removePartialSnapshots(m.cfg.Dir); err != nil {
		return err
	}
	m.snapshots, err = raft.NewFileSnapshotStoreWithLogger(m.cfg.Dir, keptSnapshots, raftLogger(m.cfg.Log))
	return err
}

func (m *Member) startRaft() error {
	srv := &server{timeout: m.cfg.RequestTimeout}
	started := make(chan struct{})
	admit := func(conn net.Conn) error {
		if <-started; srv.raft == nil { // nil if Open fails
			return ErrClosed
		}
		return m.admit(conn)
	}
	m.mux = newMux(m.cfg.Network, admit, func(conn net.Conn) {
		if <-started; srv.raft != nil {
			srv.serve(conn)
		}
	})
	defer close(started)
	cached, err := raft.NewLogCache(logCacheSize, m.log.LogStore)
	if err != nil {
		return err
	}
	logs := leaderlog.New(cached, m.cfg.Log)
	m.unwritten = logs
	news := &commits{}
	m.transport = newTransport(m.mux, m.cfg, logs.Written, news)
	m.lessor = newLessor(m.store, m.cfg)
	m.noSpace = &noSpace{store: m.store}
	rc := m.cfg.raftConfig()
	if err := m.bootstrap(rc, logs); err != nil {
		return err
	}
	if m.guard, err = rejoin.New(logs, m.snapshots, m.keepLogFrom, m.cfg.Log); err != nil {
		return err
	}
	voting := newElectorate(m.transport, m.raftID(), m.guard)
	snapshots := heldSnapshots{m.snapshots, m.transport.sending}
	m.raft, err = raft.NewRaft(rc, &fsm{m.store, m.lessor, &m.counters.applied, m.noSpace, news}, voting.log, m.log, snapshots, voting)
	if err != nil {
		return errors.Join(err, voting.Close())
	}
	voting.of(m.raft)
	news.of(m.raft)
	logs.Of(m.raft)
	m.proposer = newProposer(m.raft, m.cfg.RequestTimeout)
	m.proposer.start()
	m.forwarder = newForwarder(m.mux)
	m.readIndex = newReadIndex(m.raft, m.store, &quorum{m.raft, m.raftID(), m.forwarder}, news)
	m.lessor.start(m.raft, m.proposer, m.readIndex)
	srv.raft, srv.proposer, srv.readIndex, srv.lessor, srv.member = m.raft, m.proposer, m.readIndex, m.lessor, m
	return nil
}

// startGroup starts what looks after the member, and after the others while it leads. It ends with Close, or
// when the member was removed.
func (m *Member) startGroup() {
	ctx, cancel := context.WithCancel(WithOrigin(context.Background(), memberOrigin))
	m.stopGroup = cancel
	work := []func(context.Context){m.watchOver, m.watchLeader, m.watchMembership, m.introduce, m.tellAddress, m.watchSpace, m.compareHashes, m.keepHistory, m.boundLog}
	if len(m.cfg.Join) > 0 {
		work = append(work, m.join)
	}
	for _, f := range work {
		m.group.Go(func() { f(ctx) })
	}
}

// electIfAlone makes a member that is the only voter the leader at once. It has nobody to listen for,
// so it need not wait for the heartbeat timeout: it sends itself the message by which a leader hands
// over (TimeoutNow, Raft thesis 3.10). If that fails, the timeout does it.
func (m *Member) electIfAlone() {
	servers := m.raft.GetConfiguration().Configuration().Servers
	if len(servers) != 1 || servers[0].ID != m.raftID() {
		return
	}
	var resp raft.TimeoutNowResponse
	err := m.transport.TimeoutNow(m.raftID(), m.transport.LocalAddr(), &raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(m.cfg.NodeID), Addr: []byte(m.transport.LocalAddr())},
	}, &resp)
	if err != nil {
		m.cfg.Log.Debug("cannot start the election at once", "err", err)
	}
}

// WaitReady waits until there is a leader and this member has caught up with it.
func (m *Member) WaitReady(ctx context.Context) error {
	for {
		err := m.catchUp(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return err
		}
		select {
		case <-m.removed:
			return m.excluded
		default:
		}
	}
}

// Close stops the member. Proposals that are on their way are waited for; with others to lead,
// leadership is handed over. The data directory can be opened again afterwards.
func (m *Member) Close() (err error) {
	m.closeOnce.Do(func() {
		close(m.closed)
		m.guard.Close() // raft may stand still
		m.stopRequests()
		m.stopGroup()
		m.group.Wait()
		// Raft does not answer a transfer of leadership that it has not begun when it is shut down: none may wait.
		_ = m.changes.take(context.Background())
		m.handOver()
		err = m.release()
	})
	return err
}

func (m *Member) stopRequests() {
	m.lessor.close()
	m.proposer.close()
	m.readIndex.close()
}

// abandon is the end of an open that failed.
func (m *Member) abandon() error {
	if m.readIndex != nil { // startRaft came to its end
		m.stopRequests()
	}
	return m.release()
}

func (m *Member) handOver() {
	if m.raft.State() != raft.Leader || len(m.raft.GetConfiguration().Configuration().Servers) < 2 {
		return
	}
	if err := m.transferLeadership(anyTarget, ""); err != nil {
		m.cfg.Log.Warn("leadership not handed over; the others will elect a leader", "err", err)
	}
}

// release stops and closes what is there, in the reverse order of open.
func (m *Member) release() error {
	var errs []error
	if m.raft != nil {
		m.guard.Close()
		errs = append(errs, m.raft.Shutdown().Error())
	}
	if m.unwritten != nil {
		m.unwritten.Close()
	}
	if m.forwarder != nil {
		m.forwarder.close()
	}
	if m.mux != nil {
		m.transport.CloseStreams()
		errs = append(errs, m.transport.Close(), m.mux.close())
	} else {
		errs = append(errs, m.cfg.Network.Close())
	}
	if m.store != nil {
		errs = append(errs, m.store.Close())
	}
	if m.log != nil {
		errs = append(errs, m.log.Close())
	}
	return errors.Join(errs...)
}
