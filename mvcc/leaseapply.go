package mvcc

// What commands do to leases. Store.mu is held.

func (s *Store) grant(g *LeaseGrant) error {
	switch {
	case g.ID == 0:
		return ErrLeaseNotFound // as etcd has it; 0 means no lease everywhere else
	case g.TTLSeconds > MaxLeaseSeconds:
		return ErrLeaseTTL
	case s.leases.exists(g.ID):
		return ErrLeaseExists
	}
	s.leases.add(Lease{ID: g.ID, TTLSeconds: g.TTLSeconds})
	s.leaseChanged(g.ID)
	return nil
}

// revoke deletes the keys of a lease, all in one revision, and the lease.
func (s *Store) revoke(t *writeTxn, id int64) error {
	l := s.leases.byID[id]
	if l == nil {
		return ErrLeaseNotFound
	}
	t.begin()
	defer t.end()
	for _, k := range l.sortedKeys() {
		v, _ := k.at(t.main)
		t.deleteKey(k, v)
	}
	delete(s.leases.byID, id)
	s.leaseChanged(id)
	return nil
}

func (s *Store) checkpoint(list []LeaseCheckpoint) {
	for _, c := range list {
		if l := s.leases.byID[c.ID]; l != nil {
			l.RemainingMillis = c.RemainingMillis
			s.leaseChanged(c.ID)
		}
	}
}

func (s *Store) leaseChanged(id int64) {
	s.leases.changed[id] = struct{}{}
	s.noteDirty()
}
