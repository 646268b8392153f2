package gather

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/lingering"
)

// pair is a gathering connection and its peer, which reads when the test does.
func pair(t *testing.T) (gathering *conn, peer net.Conn, writes *atomic.Int64) {
	near, far := net.Pipe()
	writes = &atomic.Int64{}
	c := newConn(counted{near, writes}, &lingering.Leaving{})
	t.Cleanup(func() {
		_ = c.Close()
		_ = far.Close()
	})
	return c, far, writes
}

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func TestWritesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, writes := pair(t)
		var want []byte
		for i := range 100 {
			piece := bytes.Repeat([]byte{byte(i)}, 10*i)
			want = append(want, piece...)
			n, err := c.Write(piece)
			require.NoError(t, err)
			require.Equal(t, len(piece), n)
		}
		got := make([]byte, len(want))
		_, err := io.ReadFull(peer, got)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.LessOrEqual(t, writes.Load(), int64(2), "one that began at once, and one for all the rest")
	})
}

func TestASlowPeerHoldsUpWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		const piece = 1 << 10
		var written atomic.Int64
		go func() {
			for range 1000 {
				if _, err := c.Write(make([]byte, piece)); err != nil {
					return
				}
				written.Add(piece)
			}
		}()
		synctest.Wait()
		require.LessOrEqual(t, written.Load(), int64(2*pendingBytes+piece))
		_, err := io.ReadFull(peer, make([]byte, 1000*piece))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, int64(1000*piece), written.Load())
	})
}

func TestWhatWasWrittenBeforeACloseGoesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		_, err := c.Write([]byte("the last words"))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		_, err = c.Write([]byte("and more"))
		require.ErrorIs(t, err, net.ErrClosed)
		got, err := io.ReadAll(peer)
		require.NoError(t, err)
		require.Equal(t, "the last words", string(got))
		require.ErrorIs(t, c.Close(), net.ErrClosed)
	})
}

func TestCloseEndsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := pair(t)
		failed := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			failed <- err
		}()
		_, err := c.Write([]byte("nobody reads this"))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, c.Close())
		require.ErrorIs(t, <-failed, net.ErrClosed)
	})
}

func TestAPeerThatNeverReadsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		_, err := c.Write([]byte("nobody reads this"))
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, c.Close())
		time.Sleep(lingerTime)
		synctest.Wait()
		_, err = peer.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, lingerTime, time.Since(began))
	})
}

func TestAFailureIsReturnedByLaterWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		require.NoError(t, peer.Close())
		_, err := c.Write([]byte("x"))
		require.NoError(t, err, "nobody knows yet")
		synctest.Wait()
		_, err = c.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

// What a listener accepts is gathered.
func TestListen(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := Listen(inner)
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer peer.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	require.IsType(t, &conn{}, c)
	_, err = c.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	got, err := io.ReadAll(peer)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
