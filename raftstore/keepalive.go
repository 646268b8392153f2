package raftstore

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A partition loses packets without a word. The kernel then sends again after 0.2 s, 0.4 s, 0.8 s …, up to 120 s, and
// gives up after a quarter of an hour (tcp(7), tcp_retries2): on a connection that was kept, requests hang for as long
// again as the partition lasted. So connections between members end soon after the other end has fallen silent,
// and requests go over a new one, which the other end answers at once or not at all.

// unansweredLimit is how long another member's kernel may be silent before the connection counts as lost. A slow or a stopped
// process is not silent: its kernel acknowledges what is sent to it.
const unansweredLimit = 3 * time.Second

// probing has an idle connection probed, too: who waits for an answer sends nothing that would have to be acknowledged.
var probing = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: int(unansweredLimit / time.Second)}

// boundRetransmission is a net.Dialer's ControlContext: it bounds how long sent data may stay unacknowledged (RFC 5482).
func boundRetransmission(_ context.Context, _, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unansweredLimit.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}

// promptListener is a listener whose connections end when the other end has been silent for unansweredLimit.
type promptListener struct{ net.Listener }

// Accept implements net.Listener.
func (l promptListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		noticeSilence(tcp) // an error means that it has ended already: so will the first read
	}
	return conn, nil
}

func noticeSilence(conn *net.TCPConn) {
	_ = conn.SetKeepAliveConfig(probing)
	if raw, err := conn.SyscallConn(); err == nil {
		_ = boundRetransmission(context.Background(), "", "", raw)
	}
}
