package simulation

import (
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"kontiki/raftstore"
)

// network connects the members, badly if so told.
type network struct {
	dice *dice

	mu    sync.Mutex // guards everything below; comes after stream.mu
	links map[[2]string]*link
	ports map[string]*port
	conns []*conn // both ends of each
}

func newNetwork(d *dice) *network {
	return &network{dice: d, links: map[[2]string]*link{}, ports: map[string]*port{}}
}

// link is the way from one member to another; the way back is another.
type link struct {
	network  *network
	from, to string

	mu    sync.Mutex // guards everything below
	cuts  int        // partitions that are on: nothing arrives, nobody notices
	drops int        // partitions that refuse connections
	slow  time.Duration
	loss  float64 // how likely a segment must be sent again, after lossDelay
}

const (
	minLatency = 100 * time.Microsecond
	maxLatency = time.Millisecond
	// lossDelay is how long TCP waits until it sends again, roughly.
	lossDelay = 200 * time.Millisecond
)

func (n *network) link(from, to string) *link {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.links[[2]string{from, to}]
	if l == nil {
		l = &link{network: n, from: from, to: to}
		n.links[[2]string{from, to}] = l
	}
	return l
}

func (l *link) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts > 0
}

func (l *link) refuses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drops > 0
}

// latency draws how long the next segment takes.
func (l *link) latency() time.Duration {
	l.mu.Lock()
	slow, loss := l.slow, l.loss
	l.mu.Unlock()
	dice := l.network.dice
	d := minLatency + dice.upTo(maxLatency-minLatency) + dice.upTo(slow)
	if dice.happens(loss) {
		d += lossDelay
	}
	return d
}

// cut adds (+1) or takes away (-1) a partition that holds back all that goes over a link.
func (n *network) cut(from, to string, by int) {
	l := n.link(from, to)
	l.mu.Lock()
	l.cuts += by
	l.mu.Unlock()
	n.wake()
}

// refuse adds (+1) or takes away (-1) a partition that breaks connections and refuses new ones.
func (n *network) refuse(from, to string, by int) {
	l := n.link(from, to)
	l.mu.Lock()
	l.drops += by
	l.mu.Unlock()
	if by > 0 {
		n.resetAll(from, to)
	}
}

// worsen makes a link slow and lossy; with zeros it is good again.
func (n *network) worsen(from, to string, slow time.Duration, loss float64) {
	l := n.link(from, to)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow, l.loss = slow, loss
}

// resetAll breaks all connections between two members.
func (n *network) resetAll(a, b string) {
	for _, c := range n.open() {
		l := c.out.link
		if l.from == a && l.to == b || l.from == b && l.to == a {
			c.reset()
		}
	}
}

func (n *network) wake() {
	for _, c := range n.open() {
		c.in.wake()
	}
}

func (n *network) open() []*conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.conns)
}

func (n *network) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.conns, c); i >= 0 {
		n.conns = slices.Delete(n.conns, i, i+1)
	}
}

// join gives a process the address of a member.
func (n *network) join(name string) *port {
	p := &port{network: n, name: name, accept: make(chan net.Conn, 128), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[name] = p
	return p
}

// port is the raftstore.Network of one process.
type port struct {
	network *network
	name    string
	accept  chan net.Conn // a backlog as of a listening socket
	once    sync.Once
	closed  chan struct{}

	mu   sync.Mutex // guards dead
	dead bool
}

var _ raftstore.Network = (*port)(nil)

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *port) Address() string { return p.name }

func (p *port) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// kill is the end of the process: the others see its connections end, after what it has sent, and
// whatever it still believes to do reaches nobody.
func (p *port) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	_ = p.Close()
	for _, c := range p.network.open() {
		if c.owner == p {
			c.end(syscall.ECONNRESET)
		}
	}
}

func (p *port) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Dial takes the time of a message there and one back.
func (p *port) Dial(to string, timeout time.Duration) (net.Conn, error) {
	n := p.network
	there, back := n.link(p.name, to), n.link(to, p.name)
	trip := there.latency() + back.latency()
	if there.isCut() || back.isCut() || trip > timeout {
		time.Sleep(timeout)
		return nil, os.ErrDeadlineExceeded
	}
	time.Sleep(trip)
	n.mu.Lock()
	defer n.mu.Unlock()
	far := n.ports[to]
	if p.isDead() || far == nil || far.isClosed() || there.refuses() || back.refuses() {
		return nil, syscall.ECONNREFUSED
	}
	out, in := newStream(there), newStream(back)
	near := &conn{in: in, out: out, network: n, owner: p}
	other := &conn{in: out, out: in, network: n, owner: far}
	select {
	case far.accept <- other:
		n.conns = append(n.conns, near, other)
		return near, nil
	default:
		return nil, syscall.ECONNREFUSED
	}
}

func (p *port) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}
