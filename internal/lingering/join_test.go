package lingering

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// joined are two far ends that Join connects.
func joined(t *testing.T, wrap func(net.Conn) net.Conn) (a, b net.Conn, done <-chan struct{}) {
	a, nearA := net.Pipe()
	b, nearB := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Join(nearA, wrap(nearB))
	}()
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b, ended
}

func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, done := joined(t, func(c net.Conn) net.Conn { return c })
		for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
			_, err := io.WriteString(way[0], "hello")
			require.NoError(t, err)
			got := make([]byte, 5)
			_, err = io.ReadFull(way[1], got)
			require.NoError(t, err)
			require.Equal(t, "hello", string(got))
		}
		require.NoError(t, b.Close())
		_, err := a.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		<-done
	})
}

// A side that takes nothing more is heard to its end, and the other one is not held up.
func TestJoinHearsWhoTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, done := joined(t, func(c net.Conn) net.Conn { return deaf{c} })
		for range 100 {
			_, err := io.WriteString(a, "nobody wants this")
			require.NoError(t, err)
		}
		go func() {
			_, _ = io.WriteString(b, "the last words")
			_ = b.Close()
		}()
		got, err := io.ReadAll(a)
		require.NoError(t, err)
		require.Equal(t, "the last words", string(got))
		<-done
	})
}

// deaf takes nothing.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
