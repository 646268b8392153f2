package mvcc

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A lease is what keys can be attached to so that they go together: when it is revoked, they are
// deleted, all in one revision. That it is revoked when its time is up is not this package's doing: a
// state machine has no clock. Whoever leads measures the time, writes down now and then how much of it
// is left (LeaseCheckpoint), and proposes to revoke.

// MaxLeaseSeconds bounds the TTL of a lease, as in etcd.
const MaxLeaseSeconds = 9_000_000_000

// LeaseGrant makes a lease. The id is chosen by whoever proposes, and is not 0.
type LeaseGrant struct {
	ID         int64
	TTLSeconds int64
}

// LeaseCheckpoint says how much time a lease has left, so that it does not get its whole TTL again
// from the next leader. A lease that does not exist (any more) is passed over.
type LeaseCheckpoint struct {
	ID              int64
	RemainingMillis int64 // 0: all of its TTL; it was renewed
}

// Lease is what the store knows of a lease.
type Lease struct {
	ID         int64
	TTLSeconds int64
	// RemainingMillis is what was left when somebody last wrote it down; 0 if nobody did since it was
	// granted or renewed.
	RemainingMillis int64
}

// Remaining is the time a new leader has to give the lease.
func (l Lease) Remaining() time.Duration {
	if l.RemainingMillis > 0 {
		return time.Duration(l.RemainingMillis) * time.Millisecond
	}
	return time.Duration(l.TTLSeconds) * time.Second
}

// leases are the leases that exist. It is guarded by Store.mu.
//
// Which keys are attached is not written down: the record of a key's newest version says so, and at
// start the index of attachments is built from these (KV-16).
type leases struct {
	byID    map[int64]*lease
	changed map[int64]struct{} // those that the file does not have like this yet
}

type lease struct {
	Lease
	keys map[*keyIndex]struct{}
}

func newLeases() *leases {
	return &leases{byID: map[int64]*lease{}, changed: map[int64]struct{}{}}
}

func (ls *leases) exists(id int64) bool { return ls.byID[id] != nil }

// add puts a lease in the list, without keys.
func (ls *leases) add(l Lease) { ls.byID[l.ID] = &lease{Lease: l, keys: map[*keyIndex]struct{}{}} }

// attach moves a key from the lease it is attached to, if any, to another, or to none (0).
func (ls *leases) attach(k *keyIndex, id int64) {
	if k.lease == id {
		return
	}
	if old := ls.byID[k.lease]; old != nil {
		delete(old.keys, k)
	}
	k.lease = id
	if l := ls.byID[id]; l != nil {
		l.keys[k] = struct{}{}
	}
}

// attachAll builds the attachments of an index that was read from a file.
func (ls *leases) attachAll(x *index) {
	x.tree.Ascend(func(k *keyIndex) bool {
		if l := ls.byID[k.lease]; l != nil {
			l.keys[k] = struct{}{}
		}
		return true
	})
}

// sortedKeys are the keys attached, in key order: every member has to go through them in the same one.
func (l *lease) sortedKeys() []*keyIndex {
	return slices.SortedFunc(maps.Keys(l.keys), func(a, b *keyIndex) int { return cmp.Compare(a.key, b.key) })
}

// takeChanged returns the leases that are to be written to the file, and forgets that they are: it is
// for the caller to give them back (giveBack) if that fails.
func (ls *leases) takeChanged() []leaseChange {
	changes := make([]leaseChange, 0, len(ls.changed))
	for id := range ls.changed {
		c := leaseChange{id: id}
		if l := ls.byID[id]; l != nil {
			copied := l.Lease
			c.lease = &copied
		}
		changes = append(changes, c)
	}
	clear(ls.changed)
	return changes
}

func (ls *leases) giveBack(changes []leaseChange) {
	for _, c := range changes {
		ls.changed[c.id] = struct{}{}
	}
}

// leaseChange is a lease as it is to stand in the file: nil if it is not to.
type leaseChange struct {
	id    int64
	lease *Lease
}

func leaseKey(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// encodeLease gives a lease's value in the file; docs/formats/mvcc-file.md draws it.
func encodeLease(l Lease) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(l.TTLSeconds)), uint64(l.RemainingMillis))
}

func decodeLease(key, b []byte) (Lease, error) {
	if len(key) != 8 {
		return Lease{}, fmt.Errorf("%w: lease id of %d bytes", ErrCorrupt, len(key))
	}
	ttl, n := binary.Uvarint(b)
	remaining, n2 := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || n2 <= 0 || n+n2 != len(b) {
		return Lease{}, fmt.Errorf("%w: lease %x", ErrCorrupt, key)
	}
	return Lease{ID: int64(binary.BigEndian.Uint64(key)), TTLSeconds: int64(ttl), RemainingMillis: int64(remaining)}, nil
}

// Leases returns all leases, by id.
func (s *Store) Leases() []Lease {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]Lease, 0, len(s.leases.byID))
	for _, l := range s.leases.byID {
		all = append(all, l.Lease)
	}
	slices.SortFunc(all, func(a, b Lease) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Lease returns a lease; ok is false if it does not exist.
func (s *Store) Lease(id int64) (l Lease, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if l := s.leases.byID[id]; l != nil {
		return l.Lease, true
	}
	return Lease{}, false
}

// LeaseKeys returns the keys that are attached to a lease, in order.
func (s *Store) LeaseKeys(id int64) [][]byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.leases.byID[id]
	if l == nil {
		return nil
	}
	keys := make([][]byte, 0, len(l.keys))
	for _, k := range l.sortedKeys() {
		keys = append(keys, []byte(k.key))
	}
	return keys
}
