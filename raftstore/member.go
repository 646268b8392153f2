package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
	"kontiki/raftstore/leaderlog"
	"kontiki/raftstore/rejoin"
)

// Member is one member of the cluster: it keeps a copy of the store, takes part in elections, and
// serves reads and writes wherever the leader is. It implements the API server's store interface.
type Member struct {
	cfg       Config
	store     *mvcc.Store
	log       *raftFiles
	unwritten *leaderlog.Log // what raft stores its log in; it is written to log
	guard     *rejoin.Guard  // of the log
	raft      *raft.Raft
	transport transport
	snapshots raft.SnapshotStore
	mux       *mux
	proposer  *proposer
	readIndex *readIndex
	forwarder *forwarder
	lessor    *lessor
	noSpace   *noSpace
	retention retention
	counters  counters
	changes   turn          // held by who makes a change of membership; comes before all other locks
	removed   chan struct{} // closed by exclude
	excluded  error         // why; set before removed is closed
	exclusion sync.Once
	transfers transfers
	reloading sync.Mutex     // held by reloadRaft
	joining   atomic.Bool    // what Config.Join says is being done
	closed    chan struct{}  // closed by Close
	group     sync.WaitGroup // goroutines of startGroup
	stopGroup context.CancelFunc
	closeOnce sync.Once
}

// Revision returns the store's newest revision, linearizably.
func (m *Member) Revision(ctx context.Context) (int64, error) {
	if err := m.catchUp(ctx); err != nil {
		return 0, err
	}
	m.store.RequestProgress() // who asks will wait for watches to get there
	return m.store.Revision(), nil
}

// Range reads keys: linearizably at revision 0, from local history otherwise. A revision that this
// member does not have yet may be there on others, so it catches up before it says ErrFutureRevision.
func (m *Member) Range(ctx context.Context, req mvcc.RangeRequest) (mvcc.RangeResult, error) {
	if req.Revision <= 0 || req.Revision > m.store.Revision() {
		if err := m.catchUp(ctx); err != nil {
			return mvcc.RangeResult{}, err
		}
	}
	return m.store.Range(req)
}

// Watch streams changes from this member's copy of the store; see mvcc.Store.Watch.
func (m *Member) Watch(ctx context.Context, req mvcc.WatchRequest) <-chan mvcc.WatchBatch {
	return m.store.Watch(ctx, req)
}

// Txn runs a transaction; one that writes nothing is a linearizable read. See the package's invariants for what its errors mean.
func (m *Member) Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error) {
	if err := req.Validate(); err != nil {
		return mvcc.TxnResult{}, err
	}
	if req.ReadOnly() {
		if err := m.catchUp(ctx); err != nil {
			return mvcc.TxnResult{}, err
		}
		return m.store.ReadTxn(&req)
	}
	res, err := m.propose(ctx, mvcc.Command{Txn: &req})
	return res.Txn, err
}

// Compact makes reads and watches below revision impossible, on all members, and frees their space.
func (m *Member) Compact(ctx context.Context, revision int64) error {
	_, err := m.propose(ctx, mvcc.Command{Compact: revision})
	return err
}

// HashAt is the fingerprint of this member's content at a revision (0: what it has applied now).
func (m *Member) HashAt(revision int64) (mvcc.Hash, int64, error) { return m.store.HashAt(revision) }

// propose has the leader propose, usually this member.
func (m *Member) propose(ctx context.Context, c mvcc.Command) (res mvcc.Result, err error) {
	e := encoders.Get().(*encoder)
	if err := e.proposal(0, originOf(ctx), c); err != nil {
		return res, err
	}
	if m.leads() {
		res, err = m.proposeHere(ctx, c, e.b)
	} else {
		err = ErrNotLeader
	}
	if retriable(err) {
		res, err = m.proposeAnywhere(ctx, c, e.b)
	}
	if err == nil { // else somebody may still look at it
		e.recycle()
	}
	return res, err
}

func (m *Member) proposeHere(ctx context.Context, c mvcc.Command, data []byte) (mvcc.Result, error) {
	if err := m.checkSpace(c); err != nil {
		return mvcc.Result{}, err
	}
	return m.proposer.propose(ctx, data)
}

// proposeAnywhere looks for the leader.
func (m *Member) proposeAnywhere(ctx context.Context, c mvcc.Command, data []byte) (res mvcc.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
	defer cancel()
	err = m.onLeader(ctx, func(leader string) (err error) {
		if leader != "" {
			res, err = m.forwarder.propose(ctx, leader, data)
		} else {
			res, err = m.proposeHere(ctx, c, data)
		}
		return err
	})
	return res, err
}

// catchUp waits until this member has applied everything that was acknowledged before the call.
func (m *Member) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
	defer cancel()
	var index uint64
	err := m.onLeader(ctx, func(leader string) (err error) {
		if leader == "" {
			index, err = m.readIndex.get(ctx)
		} else {
			index, err = m.forwarder.readIndex(ctx, leader)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := m.store.WaitApplied(ctx, index); err != nil {
		return fmt.Errorf("catch up with the leader, which is at index %d: %w", index, err)
	}
	return nil
}

// Bounds of the pause before the leader is looked for again.
const (
	retryMin = 5 * time.Millisecond
	retryMax = 100 * time.Millisecond
)

// onLeader calls f with the leader's address, "" if that is this member, and again while there is no
// leader, or it turns out to be another, or cannot be reached: as long as nothing can have happened.
func (m *Member) onLeader(ctx context.Context, f func(leader string) error) error {
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		err := ErrNoLeader
		if leader, id := m.raft.LeaderWithID(); id == m.raftID() {
			err = f("")
		} else if leader != "" {
			err = f(string(leader))
		}
		if !retriable(err) {
			return err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w; last: %v", ErrNoLeader, ctx.Err(), err)
		case <-m.removed:
			timer.Stop()
			return m.excluded
		case <-m.closed:
			timer.Stop()
			return ErrClosed
		}
	}
}

// retriable says that a request certainly changed nothing and may fare better when the leader is
// looked for again. ErrClosed can only be another member's here: this one's own ends onLeader.
func retriable(err error) bool {
	if errors.Is(err, ErrUnknownOutcome) {
		return false
	}
	for _, e := range []error{ErrNotLeader, ErrNoLeader, ErrClosed, errNotSent, errLost} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (m *Member) leads() bool { return m.raft.State() == raft.Leader }

func (m *Member) raftID() raft.ServerID { return raft.ServerID(m.cfg.NodeID) }
