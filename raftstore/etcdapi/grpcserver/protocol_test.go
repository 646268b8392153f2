package grpcserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

// rawClient speaks HTTP/2 frame by frame.
type rawClient struct {
	*testing.T
	net.Conn
	*http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
}

func connectRaw(t *testing.T, service *testService) *rawClient {
	_, address := serve(t, service)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	c := &rawClient{T: t, Conn: conn, Framer: http2.NewFramer(conn, conn)}
	c.encoder = hpack.NewEncoder(&c.block)
	c.AllowIllegalWrites = true
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, c.WriteSettings())
	c.expect("SETTINGS")
	c.expect("WINDOW_UPDATE")
	c.expect("SETTINGS") // the acknowledgement
	return c
}

func (c *rawClient) headers(path string) []byte {
	c.block.Reset()
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":path", Value: path}, {Name: "content-type", Value: "application/grpc"}} {
		require.NoError(c, c.encoder.WriteField(f))
	}
	return c.block.Bytes()
}

// expect returns the next frame, which must be of a type.
func (c *rawClient) expect(kind string) http2.Frame {
	c.Helper()
	f, err := c.ReadFrame()
	require.NoError(c, err)
	require.Equal(c, kind, f.Header().Type.String())
	return f
}

func (c *rawClient) begin(id uint32, path string) {
	require.NoError(c, c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.headers(path), EndHeaders: true}))
}

// hello is a message with the value "hello", as an answer has it too.
var hello = []byte("\x00\x00\x00\x00\x07\x0a\x05hello")

func (c *rawClient) expectHello(id uint32) {
	c.Helper()
	require.False(c, c.expect("HEADERS").(*http2.HeadersFrame).StreamEnded())
	d := c.expect("DATA").(*http2.DataFrame)
	require.Equal(c, id, d.StreamID)
	require.Equal(c, hello, d.Data())
	require.True(c, c.expect("HEADERS").(*http2.HeadersFrame).StreamEnded())
}

// TestFramesInPieces: headers may come in several frames, and a message in any number of them, padded or empty.
func TestFramesInPieces(t *testing.T) {
	c := connectRaw(t, &testService{unary: echo})
	block := bytes.Clone(c.headers("/test.Test/Unary"))
	require.NoError(t, c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:3]}))
	require.NoError(t, c.WriteContinuation(1, false, block[3:10]))
	require.NoError(t, c.WriteContinuation(1, true, block[10:]))
	for i := range hello {
		require.NoError(t, c.WriteDataPadded(1, false, hello[i:i+1], make([]byte, 3)))
	}
	require.NoError(t, c.WriteData(1, true, nil))
	c.expectHello(1)
}

// TestClosedWindows: nothing is sent that the client has no room for, and all of it once there is.
func TestClosedWindows(t *testing.T) {
	c := connectRaw(t, &testService{unary: echo})
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5}))
	c.expect("SETTINGS")
	c.begin(1, "/test.Test/Unary")
	require.NoError(t, c.WriteData(1, true, hello))
	c.expect("HEADERS")
	require.Equal(t, hello[:5], c.expect("DATA").(*http2.DataFrame).Data())
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2})) // 3 below nothing
	c.expect("SETTINGS")
	require.NoError(t, c.WriteWindowUpdate(1, 4))
	require.Equal(t, hello[5:6], c.expect("DATA").(*http2.DataFrame).Data())
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}))
	require.Equal(t, hello[6:], c.dataOrSettings())
}

// TestWindowThatShrinks: a stream that waits for the connection's window sends nothing either when that opens, if the client has
// closed the stream's own meanwhile.
func TestWindowThatShrinks(t *testing.T) {
	c := connectRaw(t, &testService{unary: func(context.Context, *message) (*message, error) {
		return &message{Value: make([]byte, 2*defaultWindow)}, nil
	}})
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2 * defaultWindow}))
	c.expect("SETTINGS")
	c.begin(1, "/test.Test/Unary")
	require.NoError(t, c.WriteData(1, true, hello))
	c.expect("HEADERS")
	for sent := 0; sent < defaultWindow; { // all that the connection's window allows
		sent += len(c.expect("DATA").(*http2.DataFrame).Data())
	}
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}))
	c.expect("SETTINGS")
	require.NoError(t, c.WriteWindowUpdate(0, 1<<20))
	require.NoError(t, c.WritePing(false, [8]byte{1}))
	c.expect("PING") // and no data
	require.NoError(t, c.WriteWindowUpdate(1, 2*defaultWindow))
	require.NotEmpty(t, c.expect("DATA").(*http2.DataFrame).Data())
}

// dataOrSettings returns the data of the next frame of data; the server may acknowledge settings before or after.
func (c *rawClient) dataOrSettings() []byte {
	for {
		f, err := c.ReadFrame()
		require.NoError(c, err)
		if d, ok := f.(*http2.DataFrame); ok {
			return d.Data()
		}
		require.Equal(c, http2.FrameSettings, f.Header().Type)
	}
}

func TestPing(t *testing.T) {
	c := connectRaw(t, &testService{})
	require.NoError(t, c.WritePing(false, [8]byte{1, 2, 3}))
	f := c.expect("PING").(*http2.PingFrame)
	require.True(t, f.IsAck())
	require.Equal(t, [8]byte{1, 2, 3}, f.Data)
}

// TestBrokenProtocol: the connection ends, with the reason.
func TestBrokenProtocol(t *testing.T) {
	for name, broken := range map[string]struct {
		do   func(c *rawClient) error
		code http2.ErrCode
	}{
		"data before headers":   {func(c *rawClient) error { return c.WriteData(1, false, hello) }, http2.ErrCodeProtocol},
		"window over its limit": {func(c *rawClient) error { return c.WriteWindowUpdate(0, 1<<31-1) }, http2.ErrCodeFlowControl},
		"stream of the server's": {func(c *rawClient) error {
			return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 2, BlockFragment: c.headers("/test.Test/Unary"), EndHeaders: true})
		}, http2.ErrCodeProtocol},
		"headers that cannot be decoded": {func(c *rawClient) error {
			return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x80}, EndHeaders: true})
		}, http2.ErrCodeCompression},
		"headers without an end": {func(c *rawClient) error {
			err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
			for range maxHeadBytes/maxFrameBytes + 1 {
				err = errors.Join(err, c.WriteContinuation(1, false, make([]byte, maxFrameBytes)))
			}
			return err
		}, http2.ErrCodeEnhanceYourCalm},
		"ping of a stream": {func(c *rawClient) error { return c.WriteRawFrame(http2.FramePing, 0, 3, make([]byte, 8)) }, http2.ErrCodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			c := connectRaw(t, &testService{})
			require.NoError(t, broken.do(c))
			require.Equal(t, broken.code, c.expect("GOAWAY").(*http2.GoAwayFrame).ErrCode)
			_, err := c.ReadFrame()
			require.Error(t, err)
		})
	}
}

// TestBrokenStream: a stream ends, and the connection goes on.
func TestBrokenStream(t *testing.T) {
	c := connectRaw(t, &testService{unary: echo, stream: func(s grpc.ServerStream) error {
		<-s.Context().Done() // without taking what was sent
		return nil
	}})
	c.begin(1, "/test.Test/Stream")
	require.NoError(t, c.WriteWindowUpdate(1, 1<<31-1))
	require.Equal(t, http2.ErrCodeFlowControl, c.expect("RST_STREAM").(*http2.RSTStreamFrame).ErrCode)

	c.begin(3, "/test.Test/Unary")
	require.NoError(t, c.WriteData(3, false, append(bytes.Clone(hello), hello...)))
	require.True(t, c.expect("HEADERS").(*http2.HeadersFrame).StreamEnded())
	require.Equal(t, http2.ErrCodeNo, c.expect("RST_STREAM").(*http2.RSTStreamFrame).ErrCode)
	require.NoError(t, c.WriteData(3, true, hello)) // which the server does not wait for

	c.begin(5, "/test.Test/Stream") // which sends more than its window
	for range maxTestMessage/maxFrameBytes + 1 {
		require.NoError(t, c.WriteData(5, false, make([]byte, maxFrameBytes)))
	}
	require.Equal(t, http2.ErrCodeFlowControl, c.expect("RST_STREAM").(*http2.RSTStreamFrame).ErrCode)

	c.begin(7, "/test.Test/Unary")
	require.NoError(t, c.WriteData(7, true, hello))
	c.expectHello(7)
}

// FuzzConn: whatever a client sends, its connection ends with it and takes nothing along.
func FuzzConn(f *testing.F) {
	var seed bytes.Buffer
	framer := http2.NewFramer(&seed, nil)
	require.NoError(f, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}))
	c := rawClient{T: &testing.T{}, Framer: framer}
	c.encoder = hpack.NewEncoder(&c.block)
	for id, path := range map[uint32]string{1: "/test.Test/Unary", 3: "/test.Test/Stream"} {
		c.begin(id, path)
		require.NoError(f, framer.WriteData(id, id == 1, hello))
	}
	f.Add(seed.Bytes())
	f.Fuzz(func(t *testing.T, sent []byte) {
		s := New(Config{Codec: encoding.GetCodecV2("proto"), MaxMessageBytes: 1000})
		s.RegisterService(&description, &testService{unary: echo, stream: echoStream})
		mine, theirs := net.Pipe()
		s.adopt(theirs)
		received := make(chan struct{})
		go func() {
			defer close(received)
			_, _ = io.Copy(io.Discard, mine)
		}()
		_, _ = mine.Write(append([]byte(http2.ClientPreface), sent...)) // the server may hang up before
		require.NoError(t, mine.Close())
		s.Close()
		<-received
	})
}
