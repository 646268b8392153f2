package grpcserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// conn is a connection. Its reader's goroutine alone uses what stands before mu.
type conn struct {
	server  *Server
	raw     net.Conn // what net is on
	net     net.Conn
	ctx     context.Context // of the connection's calls
	cancel  context.CancelFunc
	in      *http2.Framer
	heads   *heads
	block   []byte // of headers, as far as they have come
	ends    bool   // the stream ends with these headers
	lastID  uint32 // of the streams that the client has begun
	unacked uint32 // bytes that the client may send again, and does not know yet

	mu      sync.Mutex // guards everything below, and what stream says that it guards
	streams map[uint32]*stream
	writer  writer
}

// Windows of what a client may send ahead. A whole message fits into that of a stream.
const (
	connWindow    = 16 << 20
	defaultWindow = 65535 // where RFC 9113 has a connection begin
	prefixBytes   = 5     // before each message: whether it is compressed, and its length
)

// How long a client may take until it speaks HTTP/2, and to read the last words when it has ended the connection.
const (
	greetTimeout = 20 * time.Second
	lastTimeout  = time.Second
)

const readBuffer = 32 << 10

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, raw: nc, net: nc, streams: map[uint32]*stream{}}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.writer.init(&c.mu)
	return c
}

// serve is the reader's goroutine.
func (c *conn) serve() {
	defer c.server.forget(c)
	defer c.raw.Close()
	defer c.cancel()
	if c.greet() != nil {
		return // it was no client
	}
	var writer sync.WaitGroup
	writer.Go(c.write)
	c.end(c.read())
	writer.Wait()
}

// greet does what comes before the first frame.
func (c *conn) greet() error {
	_ = c.net.SetDeadline(time.Now().Add(greetTimeout))
	p := &peer.Peer{Addr: c.net.RemoteAddr(), LocalAddr: c.net.LocalAddr()}
	if c.server.config.TLS != nil {
		t := tls.Server(c.net, c.server.config.TLS)
		if err := t.HandshakeContext(c.ctx); err != nil {
			return err
		}
		state := t.ConnectionState()
		if state.NegotiatedProtocol != "h2" {
			return fmt.Errorf("protocol %q instead of h2", state.NegotiatedProtocol)
		}
		secured := credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}
		p.AuthInfo = credentials.TLSInfo{State: state, CommonAuthInfo: secured}
		c.net = t
	}
	in := bufio.NewReaderSize(c.net, readBuffer)
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(in, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return errors.New("no HTTP/2")
	}
	_ = c.net.SetDeadline(time.Time{})
	c.in = http2.NewFramer(nil, in)
	c.in.SetReuseFrames()
	c.in.SetMaxReadFrameSize(maxFrameBytes)
	c.heads = newHeads(c.server, peer.NewContext(c.ctx, p))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writer.greet(c.streamWindow())
	return nil
}

// streamWindow has room for the largest message.
func (c *conn) streamWindow() uint32 { return uint32(c.server.config.MaxMessageBytes + prefixBytes) }

// read takes frames until the connection ends.
func (c *conn) read() error {
	for {
		f, err := c.in.ReadFrame()
		if err == nil {
			err = c.handle(f)
		}
		if wrong, ok := err.(http2.StreamError); ok {
			err = c.reset(wrong.StreamID, wrong.Code)
		}
		if err != nil {
			return err
		}
	}
}

func (c *conn) handle(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.HeadersFrame:
		c.block, c.ends = c.block[:0], f.StreamEnded()
		return c.headers(f.StreamID, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		return c.headers(f.StreamID, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		return c.data(f)
	case *http2.RSTStreamFrame:
		c.drop(f.StreamID)
	case *http2.WindowUpdateFrame:
		return c.widen(f.StreamID, f.Increment)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.pong(f.Data)
		}
	}
	return nil // priorities, a client that goes away, extensions
}

// headers takes a part of a block of headers, and begins a stream when it is the last one.
func (c *conn) headers(id uint32, part []byte, last bool) error {
	if c.block = append(c.block, part...); len(c.block) > maxHeadBytes {
		return errHeadTooLarge
	}
	if !last {
		return nil
	}
	h, err := c.heads.decode(c.block)
	if err != nil {
		return err
	}
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	switch s := c.find(id); {
	case s != nil: // trailers, of which gRPC has none from a client
		if c.ends {
			s.receiveEnd()
		}
	case id > c.lastID:
		c.lastID = id
		c.begin(id, h)
	}
	return nil // what else comes is about a stream that has ended
}

func (c *conn) begin(id uint32, h *head) {
	s := newStream(c, id, h)
	c.mu.Lock()
	s.window = c.writer.firstWindow
	c.streams[id] = s
	c.mu.Unlock()
	switch {
	case h.err != nil:
		s.refuse(h.err)
	case h.method.stream != nil:
		s.start()
		c.server.group.Go(s.serveStream)
	}
	if c.ends {
		s.receiveEnd()
	}
}

func (c *conn) data(f *http2.DataFrame) error {
	s := c.find(f.StreamID)
	if s == nil && f.StreamID > c.lastID {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	// What the connection may carry does not depend on how fast calls are: a stream has a window of its own.
	if c.unacked += f.Length; c.unacked >= connWindow/4 {
		if err := c.grant(0, c.unacked); err != nil {
			return err
		}
		c.unacked = 0
	}
	if s != nil {
		if s.credit.Add(-int64(f.Length)) < 0 {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
		}
		s.receive(f.Data())
		if f.StreamEnded() {
			s.receiveEnd()
		}
	}
	return nil
}

// find returns a stream that has not ended.
func (c *conn) find(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// drop ends a stream that the client does not want any more.
func (c *conn) drop(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.gone()
	}
}

// end ends all streams; the writer ends when it has said why.
func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		s.gone()
	}
	c.goAway(err)
	_ = c.raw.SetWriteDeadline(time.Now().Add(lastTimeout))
}
