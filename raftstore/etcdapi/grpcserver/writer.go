package grpcserver

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// writer is the sending side of a connection, guarded by conn.mu.
type writer struct {
	wake        *sync.Cond // on conn.mu: there is something to write, or it is over
	frames      *http2.Framer
	out         outBuffer
	block       bytes.Buffer // of headers
	headers     *hpack.Encoder
	window      int64     // what the client lets the connection send
	firstWindow int64     // what it lets a new stream send
	ready       []*stream // that have something to send, and may
	over        bool      // nothing is written any more but what is in out
}

// sending is the sending side of a stream, guarded by conn.mu.
type sending struct {
	window int64
	data   mem.BufferSlice     // messages with their prefixes, as far as they were not sent
	bytes  int                 // of data
	skip   int                 // of the first of data that were sent
	headed bool                // the headers were sent
	done   []hpack.HeaderField // the status; set when the call has ended
	queued bool                // it is among ready
	closed bool                // the stream is not among conn.streams any more
	whole  bool                // the client has sent all
	room   chan struct{}       // closed when data becomes little; nil while nobody waits
}

const (
	maxFrameBytes = 16 << 10 // of the frames of both sides: no client may be sent larger ones without asking
	maxWriteBytes = 64 << 10 // about the most that is written at once
	// muchBytes is how much a stream may have waiting before SendMsg waits.
	muchBytes = 64 << 10
)

func (w *writer) init(mu *sync.Mutex) {
	w.wake = sync.NewCond(mu)
	w.frames = http2.NewFramer(&w.out, nil)
	w.headers = hpack.NewEncoder(&w.block)
	w.window, w.firstWindow = defaultWindow, defaultWindow
}

// greet has the server's settings sent.
func (w *writer) greet(streamWindow uint32) {
	_ = w.frames.WriteSettings(
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeadBytes},
	)
	_ = w.frames.WriteWindowUpdate(0, connWindow-defaultWindow)
}

// write is the writer's goroutine.
func (c *conn) write() {
	defer c.raw.Close() // and the reader ends
	for {
		b := c.next()
		if b == nil {
			return
		}
		_, err := c.net.Write(*b)
		freeOut(b)
		if err != nil {
			return
		}
	}
}

// next waits for something to write; nil when it is over.
func (c *conn) next() *[]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.writer
	for {
		for !w.over && !w.due() {
			w.wake.Wait()
			// Calls that are about to answer do so first, and share the write.
			c.mu.Unlock()
			runtime.Gosched()
			c.mu.Lock()
		}
		for len(w.ready) > 0 && w.window > 0 && w.out.size() < maxWriteBytes && !w.over {
			s := w.ready[0]
			w.ready = w.ready[1:]
			s.queued = false
			c.flush(s)
		}
		if b := w.out.take(); b != nil || w.over {
			return b
		}
	}
}

// due: a client that has closed the connection's window keeps everything but control frames waiting.
func (w *writer) due() bool { return w.out.size() > 0 || len(w.ready) > 0 && w.window > 0 }

// flush writes what the windows allow of a stream, a frame of data at most, so that no stream keeps others waiting.
func (c *conn) flush(s *stream) {
	if s.closed {
		return
	}
	if !s.headed && (s.bytes > 0 || s.done == nil) {
		s.headed = true
		c.writer.writeHeaders(s.id, false, answerHeaders)
	}
	if s.bytes > 0 && s.window > 0 { // the client may have made the window smaller since the stream was queued
		c.writer.writeData(s)
	}
	switch {
	case s.bytes > 0:
		c.queue(s)
	case s.done != nil:
		c.finishStream(s)
	}
	if s.room != nil && s.bytes < muchBytes {
		close(s.room)
		s.room = nil
	}
}

// queue has the writer come by, if it can send anything of the stream.
func (c *conn) queue(s *stream) {
	if s.queued || s.closed || s.bytes > 0 && s.window <= 0 {
		return
	}
	s.queued = true
	c.writer.ready = append(c.writer.ready, s)
	c.writer.wake.Signal()
}

var answerHeaders = []hpack.HeaderField{
	{Name: ":status", Value: "200"},
	{Name: "content-type", Value: "application/grpc"},
}

func (w *writer) writeHeaders(id uint32, last bool, fields ...[]hpack.HeaderField) {
	w.block.Reset()
	for _, list := range fields {
		for _, f := range list {
			_ = w.headers.WriteField(f) // into memory
		}
	}
	// A block is little more than a text, of which each byte became three at worst (escape): it fits into a frame.
	_ = w.frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: w.block.Bytes(), EndHeaders: true, EndStream: last,
	})
}

// writeData writes one frame. It does so without frames, which would copy the data twice.
func (w *writer) writeData(s *stream) {
	n := int(min(int64(s.bytes), maxFrameBytes, w.window, s.window))
	w.window -= int64(n)
	s.window -= int64(n)
	s.bytes -= n
	b := w.out.start()
	b = append(b, byte(n>>16), byte(n>>8), byte(n), byte(http2.FrameData), 0)
	b = binary.BigEndian.AppendUint32(b, s.id)
	for n > 0 {
		first := s.data[0].ReadOnlyData()[s.skip:]
		part := first[:min(n, len(first))]
		b = append(b, part...)
		n -= len(part)
		s.skip += len(part)
		if len(part) == len(first) {
			s.data[0].Free()
			s.data, s.skip = s.data[1:], 0
		}
	}
	w.out.set(b)
}

// finishStream writes the status of a call and forgets its stream.
func (c *conn) finishStream(s *stream) {
	if s.headed {
		c.writer.writeHeaders(s.id, true, s.done)
	} else {
		c.writer.writeHeaders(s.id, true, answerHeaders, s.done)
	}
	if !s.whole { // the client need not send the rest: RFC 9113, 8.1
		_ = c.writer.frames.WriteRSTStream(s.id, http2.ErrCodeNo)
	}
	s.gone()
}

// gone forgets a stream, and ends its call if that still runs.
func (s *stream) gone() {
	s.closed = true
	delete(s.conn.streams, s.id)
	s.data.Free()
	s.data, s.bytes = nil, 0
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
	if s.cancel != nil {
		s.cancel()
	}
}

// encode makes a message with its prefix.
func (s *Server) encode(v any) (mem.BufferSlice, error) {
	data, err := s.config.Codec.Marshal(v)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
	}
	prefix := make(mem.SliceBuffer, prefixBytes)
	binary.BigEndian.PutUint32(prefix[1:], uint32(data.Len()))
	return append(mem.BufferSlice{prefix}, data...), nil
}

// put hands a message to the writer, unless most bytes wait already: room is closed when that has changed.
func (s *stream) put(data mem.BufferSlice, most int) (room <-chan struct{}, err error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.closed:
		data.Free()
		return nil, errGone
	case s.bytes >= most:
		if s.room == nil {
			s.room = make(chan struct{})
		}
		return s.room, nil
	}
	s.data = append(s.data, data...)
	s.bytes += data.Len()
	c.queue(s)
	return nil, nil
}

// finish ends the call, once what it has sent has gone.
func (s *stream) finish(err error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.done == nil {
		s.done = trailers(err)
		c.queue(s)
	}
}

var errGone = status.Error(codes.Unavailable, "grpc: the stream has ended")
