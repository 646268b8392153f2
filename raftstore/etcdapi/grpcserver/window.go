package grpcserver

import (
	"math"

	"golang.org/x/net/http2"
)

// What a client says about the connection itself, and is told: windows, settings, pings.

// widen lets a stream, or with id 0 the connection, send more.
func (c *conn) widen(id, more uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == 0 {
		if c.writer.window += int64(more); c.writer.window > math.MaxInt32 {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.writer.wake.Signal()
		return nil
	}
	s := c.streams[id]
	if s == nil {
		return nil
	}
	if s.window += int64(more); s.window > math.MaxInt32 {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeFlowControl}
	}
	if s.bytes > 0 {
		c.queue(s)
	}
	return nil
}

// settings takes the client's settings. Those that setting does not name mean nothing to a server that sends small
// frames and pushes nothing.
func (c *conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if err := f.ForeachSetting(c.setting); err != nil {
		return err
	}
	return c.control((*http2.Framer).WriteSettingsAck)
}

func (c *conn) setting(v http2.Setting) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch v.ID {
	case http2.SettingHeaderTableSize:
		c.writer.headers.SetMaxDynamicTableSize(min(v.Val, tableBytes))
	case http2.SettingInitialWindowSize:
		c.resize(int64(v.Val))
	}
	return v.Valid()
}

// resize changes the windows of all streams, which may become negative by it (RFC 9113, 6.9.2). The caller holds mu.
func (c *conn) resize(window int64) {
	difference := window - c.writer.firstWindow
	c.writer.firstWindow = window
	for _, s := range c.streams {
		s.window += difference
		if s.bytes > 0 {
			c.queue(s)
		}
	}
}

// maxUnsent bounds what waits for a client that asks for answers and does not read them; its connection is ended.
const maxUnsent = 1 << 20

// control has a frame written that is not a part of an answer.
func (c *conn) control(write func(*http2.Framer) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writer.out.size() > maxUnsent {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	c.writer.wake.Signal()
	return write(c.writer.frames) // into memory
}

func (c *conn) pong(data [8]byte) error {
	return c.control(func(f *http2.Framer) error { return f.WritePing(true, data) })
}

// grant lets the client send more on a stream, or with id 0 on the connection.
func (c *conn) grant(id, bytes uint32) error {
	return c.control(func(f *http2.Framer) error { return f.WriteWindowUpdate(id, bytes) })
}

// reset ends a stream on which the client has broken the protocol.
func (c *conn) reset(id uint32, code http2.ErrCode) error {
	c.drop(id)
	return c.control(func(f *http2.Framer) error { return f.WriteRSTStream(id, code) })
}

func (c *conn) clientEnded(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.whole = true
}

// goAway ends the writer after what was written, and after the reason if the client has broken the protocol. The caller holds mu.
func (c *conn) goAway(err error) {
	if code, ok := err.(http2.ConnectionError); ok {
		_ = c.writer.frames.WriteGoAway(c.lastID, http2.ErrCode(code), nil)
	}
	c.writer.over = true
	c.writer.wake.Signal()
}
