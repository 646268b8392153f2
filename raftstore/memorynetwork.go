package raftstore

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// MemoryNetwork connects members within a process. It works inside a testing/synctest bubble, and it
// can be partitioned. A member that is alone and has no other network uses one, too.
type MemoryNetwork struct {
	mu    sync.Mutex // guards everything below
	ports map[string]*memoryPort
	conns map[*memoryConn]struct{}
	group map[string]int // which side of a partition an address is on; all on side 0 if there is none
}

// crashed is the side of addresses whose process has died, as far as the others can see.
const crashed = -1

// NewMemoryNetwork returns a network without members.
func NewMemoryNetwork() *MemoryNetwork {
	return &MemoryNetwork{ports: map[string]*memoryPort{}, conns: map[*memoryConn]struct{}{}, group: map[string]int{}}
}

// Join returns the Network of the member at address. Who had the address before is cut off.
func (n *MemoryNetwork) Join(address string) Network {
	p := &memoryPort{network: n, address: address, accept: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[address] = p
	return p
}

// Partition cuts all connections between the groups, and refuses new ones. Addresses that no group
// names are together in one more group.
func (n *MemoryNetwork) Partition(groups ...[]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.group = map[string]int{}
	for i, g := range groups {
		for _, address := range g {
			n.group[address] = i + 1
		}
	}
	for c := range n.conns {
		if n.group[c.from] != n.group[c.to] {
			c.cut()
			delete(n.conns, c)
		}
	}
}

// Crash is what the others see when the process at address dies: its connections end, and new ones are refused.
func (n *MemoryNetwork) Crash(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ports, address)
	n.group[address] = crashed
	for c := range n.conns {
		if c.from == address || c.to == address {
			c.cut()
			delete(n.conns, c)
		}
	}
}

// Heal ends a partition.
func (n *MemoryNetwork) Heal() { n.Partition() }

var (
	errUnreachable = errors.New("memory network: unreachable")
	errNobody      = fmt.Errorf("memory network: nobody listens: %w", syscall.ECONNREFUSED)
)

// connect returns the caller's end of a new connection, and delivers the other end.
func (n *MemoryNetwork) connect(from, to string, timeout time.Duration) (net.Conn, error) {
	n.mu.Lock()
	port, ok := n.ports[to]
	var err error
	switch {
	case n.group[from] == crashed || ok && n.group[from] != n.group[to]:
		err = errUnreachable
	case !ok:
		err = errNobody
	}
	if err != nil {
		n.mu.Unlock()
		return nil, err
	}
	a, b := net.Pipe()
	conn := &memoryConn{Conn: a, far: b, network: n, from: from, to: to}
	n.conns[conn] = struct{}{}
	n.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case port.accept <- b:
		return conn, nil
	case <-port.closed:
		return nil, errors.Join(errNobody, conn.Close())
	case <-timer.C:
	}
	return nil, errors.Join(errUnreachable, conn.Close())
}

// memoryConn is the dialling end of a connection.
type memoryConn struct {
	net.Conn
	far      net.Conn
	network  *MemoryNetwork
	from, to string
}

func (c *memoryConn) cut() {
	_ = c.Conn.Close() // closing one end of a pipe cannot fail
	_ = c.far.Close()
}

func (c *memoryConn) Close() error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.conns, c)
	return c.Conn.Close()
}

// memoryPort is one member's Network.
type memoryPort struct {
	network *MemoryNetwork
	address string
	accept  chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (p *memoryPort) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *memoryPort) Dial(address string, timeout time.Duration) (net.Conn, error) {
	return p.network.connect(p.address, address, timeout)
}

func (p *memoryPort) Address() string { return p.address }

func (p *memoryPort) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}
