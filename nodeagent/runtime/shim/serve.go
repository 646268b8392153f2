package shim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// serve answers requests until the process ends.
func (c *container) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go c.handle(conn)
	}
}

func (c *container) handle(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	line, err := r.ReadSlice('\n')
	if err != nil {
		return
	}
	var req Request
	if err := json.Unmarshal(line, &req); err != nil {
		reply(conn, err)
		return
	}
	switch req.Op {
	case OpKill:
		reply(conn, c.kill(req.Signal))
	case OpReopen:
		reply(conn, c.log.reopen())
	case OpResize:
		reply(conn, c.stdio.resize(req.Width, req.Height))
	case OpWatch:
		reply(conn, nil)
		_, _ = io.Copy(io.Discard, r) // until the client or this process goes
	case OpAttach:
		reply(conn, nil)
		c.attach(conn, r, req.Stdin)
	default:
		reply(conn, fmt.Errorf("unknown operation %q", req.Op))
	}
}

func reply(conn net.Conn, err error) {
	var rep Reply
	if err != nil {
		rep.Error = err.Error()
	}
	b, _ := json.Marshal(rep) // a struct of one string
	_, _ = conn.Write(append(b, '\n'))
}

// kill signals process 1. That it has ended already is no error.
func (c *container) kill(signal int) error {
	err := unix.PidfdSendSignal(c.pidfd, unix.Signal(signal), nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// attach streams output to conn until it closes. When stdin was asked for and has ended,
// output goes on: the container may still have to answer.
func (c *container) attach(conn net.Conn, r io.Reader, stdin bool) {
	c.stdio.clients.add(conn)
	defer c.stdio.clients.remove(conn)
	if stdin {
		buf := make([]byte, maxFrame)
		for {
			n, err := r.Read(buf)
			if n > 0 && c.stdio.writeStdin(buf[:n]) != nil {
				break
			}
			if err != nil {
				break
			}
		}
		if c.spec.StdinOnce {
			c.stdio.closeStdin()
		}
	}
	waitClosed(conn)
}

// waitClosed returns when the other side has closed the connection altogether; its
// closing for writing alone (the end of stdin) does not count.
func waitClosed(conn net.Conn) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return
	}
	// Never ready by our own word: the poller wakes us for each event, and POLLHUP without
	// POLLRDHUP alone means that both halves are shut.
	_ = raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd)}}
		_, _ = unix.Poll(p, 0)
		return p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
}
