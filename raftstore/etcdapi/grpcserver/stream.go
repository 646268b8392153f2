package grpcserver

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// stream is one call. It is a grpc.ServerStream.
type stream struct {
	conn *conn
	id   uint32
	head *head

	// The reader's goroutine alone uses these.
	partial []byte // what has come of the next message
	ended   bool   // nothing more comes from the client

	credit  atomic.Int64 // bytes that the client may still send, padding included
	message []byte       // of a unary call; complete when that begins
	inbox   *inbox       // of a stream; nil in a unary call
	unacked uint32       // bytes of the inbox that were taken, and the client does not know of; RecvMsg alone uses it

	ctx    context.Context // of the call; set when it begins
	cancel context.CancelFunc

	sending // guarded by conn.mu
}

func newStream(c *conn, id uint32, h *head) *stream {
	s := &stream{conn: c, id: id, head: h}
	s.credit.Store(int64(c.streamWindow()))
	return s
}

// receive takes a part of the client's messages.
func (s *stream) receive(b []byte) {
	if s.ended {
		return
	}
	s.partial = append(s.partial, b...)
	for len(s.partial) >= prefixBytes && !s.ended {
		n := int(binary.BigEndian.Uint32(s.partial[1:]))
		switch max := s.conn.server.config.MaxMessageBytes; {
		case n > max:
			s.refuse(status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", n, max))
			return
		case s.partial[0] != 0:
			s.refuse(status.Error(codes.Internal, "grpc: compressed flag set with identity or empty encoding"))
			return
		}
		end := prefixBytes + n
		if len(s.partial) < end {
			s.partial = slices.Grow(s.partial, end-len(s.partial))
			return
		}
		message := s.partial[prefixBytes:end:end]
		s.partial = s.partial[end:]
		s.deliver(message)
	}
}

func (s *stream) deliver(message []byte) {
	switch {
	case s.inbox != nil:
		s.inbox.put(message)
	case s.message != nil:
		s.refuse(status.Error(codes.Internal, "grpc: more than one message in a unary call"))
	default:
		s.message = message
	}
}

// receiveEnd begins a unary call.
func (s *stream) receiveEnd() {
	s.conn.clientEnded(s)
	if s.ended {
		return
	}
	s.ended = true
	switch {
	case s.inbox != nil:
		s.inbox.end(io.EOF)
	case s.message == nil:
		s.finish(status.Error(codes.Internal, "grpc: no message in a unary call"))
	default:
		s.start()
		s.conn.server.begin(s)
	}
}

// refuse ends a call that the client has begun in a wrong way.
func (s *stream) refuse(err error) {
	s.ended, s.partial = true, nil
	if s.inbox != nil {
		s.inbox.end(err)
	}
	s.finish(err)
}

// start makes the call's context.
func (s *stream) start() {
	ctx, cancel := s.head.ctx, context.CancelFunc(nil)
	if s.head.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.head.timeout)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	if s.head.method.stream != nil {
		s.inbox = newInbox()
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.ctx, s.cancel = ctx, cancel
}

func (s *stream) serveUnary() {
	defer s.cancel()
	m := s.head.method
	answer, err := m.unary(m.impl, s.ctx, s.decode, s.conn.server.config.Unary)
	if err == nil {
		err = s.answer(answer)
	}
	s.finish(err)
}

// answer sends the answer of a unary call, however long it is.
func (s *stream) answer(v any) error {
	data, err := s.conn.server.encode(v)
	if err == nil {
		_, err = s.put(data, math.MaxInt)
	}
	return err
}

func (s *stream) decode(v any) error { return s.unmarshal(s.message, v) }

func (s *stream) unmarshal(message []byte, v any) error {
	if err := s.conn.server.config.Codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, v); err != nil {
		return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	}
	return nil
}

func (s *stream) serveStream() {
	defer s.cancel()
	m, around := s.head.method, s.conn.server.config.Stream
	if around == nil {
		s.finish(m.stream(m.impl, s))
		return
	}
	s.finish(around(m.impl, s, m.streamInfo, m.stream))
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *stream) RecvMsg(v any) error {
	message, err := s.inbox.take(s.ctx)
	if err != nil {
		return err
	}
	// The client may send as much more as was taken; it is told when that has become much.
	if s.unacked += uint32(prefixBytes + len(message)); s.unacked >= s.conn.streamWindow()/4 {
		s.credit.Add(int64(s.unacked))
		if err := s.conn.grant(s.id, s.unacked); err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		s.unacked = 0
	}
	return s.unmarshal(message, v)
}

// SendMsg implements grpc.ServerStream. It waits while much of what was sent before is still here. Unlike that of
// grpc-go it may be called by several goroutines at a time.
func (s *stream) SendMsg(v any) error {
	data, err := s.conn.server.encode(v)
	if err != nil {
		return err
	}
	for {
		room, err := s.put(data, muchBytes)
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-s.ctx.Done():
			data.Free()
			return status.FromContextError(s.ctx.Err()).Err()
		}
	}
}

var errNoHeaders = status.Error(codes.Unimplemented, "grpcserver: calls cannot send headers")

// SetHeader implements grpc.ServerStream; it fails.
func (s *stream) SetHeader(metadata.MD) error { return errNoHeaders }

// SendHeader implements grpc.ServerStream; it fails.
func (s *stream) SendHeader(metadata.MD) error { return errNoHeaders }

// SetTrailer implements grpc.ServerStream; it does nothing.
func (s *stream) SetTrailer(metadata.MD) {}

var _ grpc.ServerStream = (*stream)(nil)
