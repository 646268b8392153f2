package raftstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"kontiki/mvcc"
)

// MinLeaseSeconds is the shortest TTL: what is shorter could not be renewed through an election.
const MinLeaseSeconds = 2

// LeaseStatus is a lease with its time.
type LeaseStatus struct {
	ID         int64
	TTLSeconds int64
	Remaining  time.Duration
}

// GrantLease makes a lease; with id 0, it chooses one. A TTL below MinLeaseSeconds is raised to that.
// It fails with mvcc.ErrLeaseExists or mvcc.ErrLeaseTTL.
func (m *Member) GrantLease(ctx context.Context, id, ttlSeconds int64) (mvcc.Lease, error) {
	chosen := id
	for {
		if id == 0 {
			chosen = 1 + rand.Int64N(1<<63-2)
		}
		l := mvcc.Lease{ID: chosen, TTLSeconds: max(ttlSeconds, MinLeaseSeconds)}
		_, err := m.propose(ctx, mvcc.Command{Grant: &mvcc.LeaseGrant{ID: l.ID, TTLSeconds: l.TTLSeconds}})
		if id == 0 && errors.Is(err, mvcc.ErrLeaseExists) {
			continue
		}
		return l, err
	}
}

// RevokeLease ends a lease and deletes its keys, in one revision, which it returns. It fails with
// mvcc.ErrLeaseNotFound.
func (m *Member) RevokeLease(ctx context.Context, id int64) (int64, error) {
	if id == 0 {
		return 0, mvcc.ErrLeaseNotFound
	}
	res, err := m.propose(ctx, mvcc.Command{Revoke: id})
	return res.Txn.Revision, err
}

// RenewLease gives a lease its whole TTL again. It fails with mvcc.ErrLeaseNotFound when the lease is
// gone or its time is up.
func (m *Member) RenewLease(ctx context.Context, id int64) (LeaseStatus, error) {
	return m.askLessor(ctx, frameRenew, id, func(ctx context.Context, l *lessor) (LeaseStatus, error) { return l.renew(ctx, id) })
}

// LeaseTimeToLive says how much time a lease has left. It fails with mvcc.ErrLeaseNotFound.
func (m *Member) LeaseTimeToLive(ctx context.Context, id int64) (LeaseStatus, error) {
	return m.askLessor(ctx, frameTTL, id, func(ctx context.Context, l *lessor) (LeaseStatus, error) { return l.timeToLive(ctx, id) })
}

// askLessor asks the lessor of the leader.
func (m *Member) askLessor(ctx context.Context, kind byte, id int64, local func(context.Context, *lessor) (LeaseStatus, error)) (s LeaseStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
	defer cancel()
	err = m.onLeader(ctx, func(leader string) (err error) {
		if leader == "" {
			s, err = local(ctx, m.lessor)
		} else {
			s, err = m.forwarder.lease(ctx, leader, kind, id)
		}
		return err
	})
	return s, err
}

// Leases returns all leases, linearizably, by id.
func (m *Member) Leases(ctx context.Context) ([]mvcc.Lease, error) {
	if err := m.catchUp(ctx); err != nil {
		return nil, err
	}
	return m.store.Leases(), nil
}

// LeaseKeys returns the keys that are attached to a lease, linearizably, in order.
func (m *Member) LeaseKeys(ctx context.Context, id int64) ([][]byte, error) {
	if err := m.catchUp(ctx); err != nil {
		return nil, err
	}
	return m.store.LeaseKeys(id), nil
}

// lease asks the member at address to renew a lease, or for its time.
func (f *forwarder) lease(ctx context.Context, address string, kind byte, id int64) (LeaseStatus, error) {
	var e encoder
	e.varint(id)
	body, err := f.call(ctx, address, kind, e.b)
	if err != nil {
		return LeaseStatus{}, err
	}
	d := decoder{b: body}
	s := LeaseStatus{ID: id, TTLSeconds: d.varint(), Remaining: time.Duration(d.varint())}
	return s, d.end()
}

// lease answers forwarder.lease.
func (s *server) lease(ctx context.Context, f frame) ([]byte, error) {
	d := decoder{b: f.body}
	id := d.varint()
	if err := d.end(); err != nil {
		return nil, err
	}
	ask := s.lessor.timeToLive
	if f.kind == frameRenew {
		ask = s.lessor.renew
	}
	status, err := ask(ctx, id)
	var e encoder
	e.varint(status.TTLSeconds)
	e.varint(int64(status.Remaining))
	return e.b, err
}
