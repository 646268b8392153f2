package raftstore

import (
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// Network is how a member reaches the others and is reached: raft's messages and forwarded requests
// share it. There are two: TCP with or without TLS (Listen), and memory (NewMemoryNetwork).
type Network interface {
	// Accept waits for a connection from another member, until Close.
	Accept() (net.Conn, error)
	// Dial connects to the member at address.
	Dial(address string, timeout time.Duration) (net.Conn, error)
	// Address is what the others dial to reach this member.
	Address() string
	// Close ends Accept. Connections stay open.
	Close() error
}

// tcpNetwork is a Network over TCP.
type tcpNetwork struct {
	net.Listener
	advertise string
	client    func() *tls.Config
}

// Listen returns a Network on a TCP address. With server and client given, all connections are mutual
// TLS: server must require and verify client certificates, client must present one; it is asked for at each
// dial, so that a renewed certificate is used from then on. Advertise is the address that other members use;
// by default that of the listener.
func Listen(address, advertise string, server *tls.Config, client func() *tls.Config) (Network, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for members: %w", err)
	}
	return NewNetwork(l, advertise, server, client), nil
}

// NewNetwork is Listen for a listener that exists. The network owns it from here on.
func NewNetwork(l net.Listener, advertise string, server *tls.Config, client func() *tls.Config) Network {
	if advertise == "" {
		advertise = l.Addr().String()
	}
	l = promptListener{l}
	if server != nil {
		l = tls.NewListener(l, server)
	}
	return &tcpNetwork{Listener: l, advertise: advertise, client: client}
}

func (n *tcpNetwork) Address() string { return n.advertise }

func (n *tcpNetwork) Dial(address string, timeout time.Duration) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout, KeepAliveConfig: probing, ControlContext: boundRetransmission}
	if n.client == nil {
		return d.Dial("tcp", address)
	}
	return tls.DialWithDialer(d, "tcp", address, n.client())
}
