package raftstore

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Both ends of a connection between members notice that the other has fallen silent. What it is good for is shown by
// faults.TestLongPartition; this needs no partition.
func TestConnectionsNoticeSilence(t *testing.T) {
	for name, tls := range map[string]bool{"tcp": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			authority := newAuthority(t)
			server, client := authority.issue(t, "a")
			if !tls {
				server, client = nil, nil
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			n := NewNetwork(l, "", server, always(client))
			defer func() { require.NoError(t, n.Close()) }()
			done := make(chan error, 1)
			accepted := make(chan net.Conn, 1)
			go func() {
				conn, err := n.Accept()
				if err == nil {
					accepted <- conn
					_, err = conn.Write([]byte{0}) // with TLS, this is the handshake
				}
				done <- err
			}()
			dialed, err := n.Dial(n.Address(), 10*time.Second)
			require.NoError(t, err)
			require.NoError(t, <-done)
			for _, conn := range []net.Conn{dialed, <-accepted} {
				defer func() { _ = conn.Close() }() // TLS would like to say goodbye to the other end, which is gone
				requireNotices(t, conn)
			}
		})
	}
}

func requireNotices(t *testing.T, conn net.Conn) {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	get := func(level, option int) (value int) {
		require.NoError(t, raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, option) }))
		require.NoError(t, err)
		return value
	}
	require.Equal(t, int(unansweredLimit.Milliseconds()), get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT))
	require.Equal(t, 1, get(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
	require.Equal(t, 1, get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE))
}
