package raftstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"kontiki/mvcc"
)

const dialTimeout = time.Second

// errNotSent: a request did not leave this member, so that it can be tried again.
var errNotSent = errors.New("raftstore: cannot reach the member")

// errLost: a connection broke with a request on it.
var errLost = errors.New("raftstore: connection to the member lost")

// forwarder sends requests to other members, over one connection for each.
type forwarder struct {
	mux *mux

	mu     sync.Mutex // guards everything below; comes before forwardConn.mu
	conns  map[string]*forwardConn
	dials  map[string]chan struct{} // room for one: who is in it may dial the address
	closed bool
	group  sync.WaitGroup
}

func newForwarder(m *mux) *forwarder {
	return &forwarder{mux: m, conns: map[string]*forwardConn{}, dials: map[string]chan struct{}{}}
}

func (f *forwarder) close() {
	f.mu.Lock()
	f.closed = true
	for _, c := range f.conns {
		_ = c.conn.Close()
	}
	f.mu.Unlock()
	f.group.Wait()
}

// propose has the member at address propose.
func (f *forwarder) propose(ctx context.Context, address string, data []byte) (mvcc.Result, error) {
	body, err := f.call(ctx, address, frameProposal, data)
	if err != nil {
		var answered *remoteError
		if errors.Is(err, errNotSent) || errors.As(err, &answered) {
			return mvcc.Result{}, err
		}
		return mvcc.Result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	d := decoder{b: body}
	res := mvcc.Result{Txn: d.result(1)}
	if err := d.end(); err != nil {
		return mvcc.Result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return res, nil
}

// readIndex asks the member at address for a read index.
func (f *forwarder) readIndex(ctx context.Context, address string) (uint64, error) {
	return f.number(ctx, address, frameReadIndex)
}

// term asks the member at address for its term.
func (f *forwarder) term(ctx context.Context, address string) (uint64, error) {
	return f.number(ctx, address, frameTerm)
}

func (f *forwarder) number(ctx context.Context, address string, kind byte) (uint64, error) {
	body, err := f.call(ctx, address, kind, nil)
	if err != nil {
		return 0, err
	}
	d := decoder{b: body}
	n := d.uvarint()
	return n, d.end()
}

// call sends a request and waits for its answer.
func (f *forwarder) call(ctx context.Context, address string, kind byte, body []byte) ([]byte, error) {
	c, err := f.conn(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	number, answer, err := c.send(kind, body) // answer is closed if there will be none
	if err != nil {
		return nil, err
	}
	select {
	case a, ok := <-answer:
		if !ok {
			return nil, errLost
		}
		if a.kind == frameError {
			return nil, decodeError(a.body)
		}
		return a.body, nil
	case <-ctx.Done():
		c.forget(number)
		return nil, ctx.Err()
	}
}

// leaderIs ends what waits for the answer of a leader that was deposed: the one at address leads now. The other may hang
// or be cut off, and never answer; of a proposal it could only say that its outcome is unknown. Questions that any
// member answers stay.
func (f *forwarder) leaderIs(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for to, c := range f.conns {
		if to != address {
			c.abandonLeader()
		}
	}
}

// conn returns the connection to a member, a new one if there is none or the last one broke.
func (f *forwarder) conn(ctx context.Context, address string) (*forwardConn, error) {
	if c := f.existing(address); c != nil {
		return c, nil
	}
	dialing := f.dialing(address) // not a mutex: waiting for it ends with the context
	select {
	case dialing <- struct{}{}:
		defer func() { <-dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c := f.existing(address); c != nil { // another request was faster
		return c, nil
	}
	conn, err := f.mux.dial(streamForward, address, dialTimeout)
	if err != nil {
		return nil, err
	}
	return f.adopt(address, conn)
}

func (f *forwarder) dialing(address string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dials[address] == nil {
		f.dials[address] = make(chan struct{}, 1)
	}
	return f.dials[address]
}

func (f *forwarder) existing(address string) *forwardConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.conns[address]; c != nil && !c.isBroken() {
		return c
	}
	return nil
}

func (f *forwarder) adopt(address string, conn net.Conn) (*forwardConn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.Join(ErrClosed, conn.Close())
	}
	c := &forwardConn{conn: conn, out: bufio.NewWriter(conn), pending: map[uint64]pendingCall{}}
	f.conns[address] = c
	f.group.Go(c.receive)
	return c, nil
}

// forwardConn is a connection that carries requests.
type forwardConn struct {
	conn net.Conn

	writeMu sync.Mutex // guards out; comes before mu
	out     *bufio.Writer

	mu      sync.Mutex // guards everything below
	last    uint64     // number of the last request
	pending map[uint64]pendingCall
	broken  bool
}

// pendingCall is a request that waits for its answer.
type pendingCall struct {
	kind   byte
	answer chan frame // room for one; closed if there will be none
}

func (c *forwardConn) isBroken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// send writes a request. The channel gets the answer; it is closed if the connection breaks before.
func (c *forwardConn) send(kind byte, body []byte) (uint64, <-chan frame, error) {
	answer := make(chan frame, 1)
	c.mu.Lock()
	if c.broken {
		c.mu.Unlock()
		return 0, nil, errNotSent
	}
	c.last++
	number := c.last
	c.pending[number] = pendingCall{kind, answer}
	c.mu.Unlock()

	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if err := writeFrame(c.out, frame{number: number, kind: kind, body: body}); err != nil {
		_ = c.conn.Close() // receive ends, and with it all that is pending
		return 0, nil, fmt.Errorf("%w: %w", errLost, err)
	}
	return number, answer, nil
}

func (c *forwardConn) forget(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, number)
}

// receive hands answers to who waits for them, until the connection breaks.
func (c *forwardConn) receive() {
	in := bufio.NewReader(c.conn)
	for {
		f, err := readFrame(in)
		if err != nil {
			c.abandon()
			return
		}
		c.mu.Lock()
		if call, waits := c.pending[f.number]; waits {
			delete(c.pending, f.number)
			call.answer <- f
		}
		c.mu.Unlock()
	}
}

func (c *forwardConn) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
	for _, call := range c.pending {
		close(call.answer)
	}
	c.pending = nil
	_ = c.conn.Close()
}

// abandonLeader ends what waits for a member as the leader. Changes of membership stay: one of them is a transfer of
// leadership, and it is the old leader who says that it has worked.
func (c *forwardConn) abandonLeader() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, call := range c.pending {
		switch call.kind {
		case frameProposal, frameReadIndex, frameRenew, frameTTL:
			close(call.answer)
			delete(c.pending, number)
		}
	}
}
