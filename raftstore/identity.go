package raftstore

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
)

// Who may take part in raft. TLS has made sure that the other end has a certificate of the store's authority; but that
// also signs certificates of clients, and of members that were removed. Raft's messages are taken only from
// a connection whose certificate is for a member: one of its names is the member's ID or Name.
//
// A member may lag, and not know yet that another has joined, which perhaps leads by now; to refuse that one
// would be to lag for ever (Raft thesis 4.1: messages of an unknown leader must be accepted). So it asks those
// it knows, and one yes is enough. A member that joins knows nobody yet, or what a snapshot says, which may be
// out of date: until its own configuration lists it, it takes messages from anyone with a certificate. It has
// no vote to give then (votes.go).

// identity is who is at the other end of a connection: the names of its certificate. Nil is a connection without TLS.
type identity struct{ names []string }

// identify returns who is at the other end of a connection. The TLS handshake must be over: something was read.
func identify(conn net.Conn) *identity {
	if t, ok := conn.(*trackedConn); ok {
		conn = t.Conn
	}
	secured, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return nil
	}
	who := &identity{}
	if chain := secured.ConnectionState().PeerCertificates; len(chain) > 0 {
		who.names = append([]string{chain[0].Subject.CommonName}, chain[0].DNSNames...)
	}
	return who
}

// is says whether the other end may go by a name. Without TLS there is nothing to decide by.
func (i *identity) is(name string) bool { return i == nil || slices.Contains(i.names, name) }

// admit decides about a connection for raft.
func (m *Member) admit(conn net.Conn) error {
	who := identify(conn)
	if who == nil || !m.isMember() || m.knowsAny(who.names) || m.othersKnow(who.names) {
		return nil
	}
	m.cfg.Log.Warn("refused raft messages: the certificate is not that of a member", "names", who.names, "from", conn.RemoteAddr())
	return ErrStranger
}

// knowsAny says whether one of the names is that of a member that this one knows. Its own it knows before it is noted: it
// calls itself to be elected at once (electIfAlone).
func (m *Member) knowsAny(names []string) bool {
	return m.cfg.Name != "" && slices.Contains(names, m.cfg.Name) || slices.ContainsFunc(m.LocalMembers(), func(i MemberInfo) bool {
		return slices.Contains(names, i.ID) || i.Name != "" && slices.Contains(names, i.Name)
	})
}

// othersKnow asks the other members whether one of the names is that of a member.
func (m *Member) othersKnow(names []string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	servers := m.servers()
	answers := make(chan bool, len(servers))
	for _, s := range servers {
		go func() { answers <- s.ID != m.raftID() && m.forwarder.knows(ctx, string(s.Address), names) }()
	}
	for range servers {
		if <-answers {
			return true
		}
	}
	return false
}

// knows asks the member at address whether one of the names is that of a member.
func (f *forwarder) knows(ctx context.Context, address string, names []string) bool {
	var e encoder
	e.strings(names)
	body, err := f.call(ctx, address, frameKnown, e.b)
	return err == nil && len(body) == 1 && body[0] == 1
}

func (s *server) known(body []byte) ([]byte, error) {
	d := decoder{b: body}
	names := d.strings()
	if err := d.end(); err != nil {
		return nil, err
	}
	var e encoder
	e.flags(s.member.knowsAny(names))
	return e.b, nil
}
