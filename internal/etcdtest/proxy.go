package etcdtest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy passes TCP connections on to one address, and can cut them.
type proxy struct {
	address string
	target  string
	running sync.WaitGroup

	mu    sync.Mutex // guards what follows
	down  bool
	mute  bool
	conns map[net.Conn]struct{} // of clients
}

func startProxy(t testing.TB, target string) *proxy {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: listener.Addr().String(), target: target, conns: map[net.Conn]struct{}{}}
	p.running.Go(func() { p.accept(listener) })
	t.Cleanup(func() {
		listener.Close()
		p.setDown(true)
		p.running.Wait()
	})
	return p
}

func (p *proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.pass(client) })
	}
}

// pass copies both ways until either end closes, or the client's connection is cut.
func (p *proxy) pass(client net.Conn) {
	defer client.Close()
	if !p.add(client) {
		return
	}
	defer p.remove(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	_, _ = io.Copy(answers{p, client}, server)
	client.Close()
	up.Wait()
}

// answers writes to a client what the server says, unless the server is mute.
type answers struct {
	p      *proxy
	client net.Conn
}

func (a answers) Write(b []byte) (int, error) {
	a.p.mu.Lock()
	mute := a.p.mute
	a.p.mu.Unlock()
	if mute {
		return len(b), nil
	}
	return a.client.Write(b)
}

func (p *proxy) add(client net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return false
	}
	p.conns[client] = struct{}{}
	return true
}

func (p *proxy) remove(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
}

func (p *proxy) setMute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = true
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = false
	for client := range p.conns {
		client.Close()
	}
}

func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.cut()
	}
}
