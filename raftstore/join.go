package raftstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Joining. A member with an empty Dir and Config.Join starts without a configuration: it answers, but
// cannot vote and does not campaign. It asks the members at Join, one after the other, to be added; who
// is asked passes it on to the leader, which adds it as a learner and begins to send it the log. The
// steward gives it its vote when it has caught up.
//
// A member whose disk was lost does the same, with a new id at its old address: that the address answers with the new
// id proves that the old member is gone, and the leader removes it first (change.vacate).

const joinRetry = time.Second

// join is a goroutine: it asks until this member was added.
//
// At the address of a member whose disk was lost, it gets that one's entries, and with them a configuration
// that does not list it, before it is added: that is no reason to stop asking, nor to think it was removed.
func (m *Member) join(ctx context.Context) {
	if len(m.servers()) > 0 {
		return
	}
	m.joining.Store(true)
	defer m.joining.Store(false)
	for began := time.Now(); !m.isMember(); {
		var errs []error
		for _, address := range m.cfg.Join {
			err := m.askToJoin(ctx, address)
			if err == nil { // it is committed. To ask once more would undo a removal that comes soon
				return
			}
			errs = append(errs, fmt.Errorf("%s: %w", address, err))
		}
		err := errors.Join(errs...)
		if m.givesUp(err, began) {
			m.exclude(fmt.Errorf("%w: %w", ErrNotLetIn, err))
			return
		}
		m.cfg.Log.Warn("cannot join yet, will ask again", "err", err)
		if !pause(ctx, joinRetry) {
			return
		}
	}
}

// givesUp says whether it is of no use to ask again: another answer cannot be expected, or it took too long.
func (m *Member) givesUp(err error, began time.Time) bool {
	if errors.Is(err, ErrNameTaken) || errors.Is(err, ErrStranger) || isUntrusted(err) {
		return true
	}
	return m.cfg.JoinTimeout > 0 && time.Since(began) >= m.cfg.JoinTimeout
}

// isUntrusted says whether one end does not trust the other's certificate.
func isUntrusted(err error) bool {
	var alert tls.AlertError
	const unknownCA = 48 // RFC 8446, 6
	return errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, &alert) && alert == unknownCA
}

// isMember says whether this member's newest configuration lists it.
func (m *Member) isMember() bool {
	_, ok := serverByID(m.servers(), m.cfg.NodeID)
	return ok
}

func (m *Member) askToJoin(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
	defer cancel()
	var e encoder
	e.string(m.cfg.NodeID)
	e.string(m.cfg.Network.Address())
	e.string(m.cfg.Name)
	_, err := m.forwarder.call(ctx, address, frameJoin, e.b)
	return err
}

// letJoin answers askToJoin. The caller has a certificate, and gets in only under a name that is in it: by the name all
// others will know the member's connections (identity.go).
func (s *server) letJoin(ctx context.Context, caller *identity, body []byte) error {
	d := decoder{b: body}
	id, address, name := d.string(), d.string(), d.string()
	if err := d.end(); err != nil {
		return err
	}
	if !caller.is(cmp.Or(name, id)) {
		return fmt.Errorf("%w: it is not for %q", ErrStranger, cmp.Or(name, id))
	}
	return s.member.change(ctx, change{kind: changeAdd, id: id, address: address, name: name})
}

// introduce is a goroutine: it sees to it that all members know this one's name and client addresses.
func (m *Member) introduce(ctx context.Context) {
	if m.cfg.Name == "" && len(m.cfg.ClientURLs) == 0 {
		return
	}
	value := encodeMemberNote(m.cfg.Name, m.cfg.ClientURLs)
	for delay := retryMin; ; delay = min(2*delay, joinRetry) {
		if m.introduceOnce(ctx, value) || !pause(ctx, delay) {
			return
		}
	}
}

func (m *Member) introduceOnce(ctx context.Context, value []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
	defer cancel()
	if _, in := serverByID(m.servers(), m.cfg.NodeID); !in || m.catchUp(ctx) != nil {
		return false
	}
	return m.note(ctx, memberNotes+m.cfg.NodeID, value) == nil
}
