package lingering

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pair is a connection that lingers and its peer. A pipe has no half that could be closed: to its peer all of it is open.
func pair(t *testing.T) (c *conn, peer net.Conn) {
	near, far := net.Pipe()
	c = &conn{halfCloser: wholePipe{near}, leaving: &Leaving{}}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return c, far
}

type wholePipe struct{ net.Conn }

func (wholePipe) CloseWrite() error { return nil }

// A server that answers and closes while its client still sends: the client gets the answer.
func TestLastWordsArrive(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := Listen(inner)
	defer listener.Close()
	answer, sent := bytes.Repeat([]byte("x"), 200<<10), make([]byte, 1<<20)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(answer)
			_ = c.Close()
		}
	}()
	for range 100 {
		client, err := net.Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		_, err = client.Write(sent)
		require.NoError(t, err)
		got, err := io.ReadAll(client)
		require.NoError(t, err)
		require.Len(t, got, len(answer))
		require.NoError(t, client.Close())
	}
	listener.Drain(t.Context())
}

func TestCloseEndsReadsAndWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := pair(t)
		failed := make(chan error, 2)
		go func() {
			_, err := c.Read(make([]byte, 1))
			failed <- err
		}()
		go func() {
			_, err := c.Write([]byte("nobody reads this"))
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, c.Close())
		require.Error(t, <-failed)
		require.Error(t, <-failed)
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, c.SetDeadline(time.Time{}), net.ErrClosed)
		require.ErrorIs(t, c.Close(), net.ErrClosed)
	})
}

func TestAPeerThatGoesOnIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := pair(t)
		began := time.Now()
		require.NoError(t, c.Close())
		for {
			if _, err := peer.Write([]byte("and another thing")); err != nil {
				require.ErrorIs(t, err, io.ErrClosedPipe)
				break
			}
			time.Sleep(time.Second)
		}
		require.InDelta(t, lingerTime, time.Since(began), float64(time.Second)) // when the next write is
	})
}

func TestAPeerThatHasEndedIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := pair(t)
		require.NoError(t, peer.Close())
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, c.Close())
		require.Empty(t, c.leaving.conns)
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := pair(t)
		require.NoError(t, c.Close())
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			_ = peer.Close()
		}()
		c.leaving.Drain(t.Context())
		require.Equal(t, time.Second, time.Since(began), "the peer has ended")

		c, _ = pair(t)
		late, _ := pair(t)
		late.leaving = c.leaving
		require.NoError(t, c.Close())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.leaving.Drain(ctx)
		require.Equal(t, 2*time.Second, time.Since(began), "the other one is left")
		require.NoError(t, late.Close())
		c.leaving.Drain(t.Context())
		require.Equal(t, 2*time.Second, time.Since(began), "who is closed now is not waited for")
	})
}
