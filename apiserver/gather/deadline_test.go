package gather

import (
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fillUp writes until a Write is refused, and returns how much was taken and why no more.
func fillUp(c net.Conn) (taken int, err error) {
	for {
		n, err := c.Write(make([]byte, 1<<10))
		taken += n
		if err != nil {
			return taken, err
		}
	}
}

func TestADeadlineEndsAWriteThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := pair(t)
		began := time.Now()
		require.NoError(t, c.SetWriteDeadline(began.Add(time.Hour)))
		require.NoError(t, c.SetWriteDeadline(began.Add(time.Minute)))
		_, err := fillUp(c)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestADeadlineThatIsTakenBackEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Minute)))
		require.NoError(t, c.SetWriteDeadline(time.Time{}))
		go func() { _, _ = fillUp(c) }()
		time.Sleep(time.Hour)
		_, err := io.ReadFull(peer, make([]byte, 10*pendingBytes))
		require.NoError(t, err)
	})
}

func TestAPastDeadlineEndsAWriteThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := pair(t)
		failed := make(chan error, 1)
		go func() {
			_, err := fillUp(c)
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, c.SetDeadline(time.Now()))
		require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
	})
}

// What a Write has taken goes out, whatever deadlines are set then: crypto/tls sets one of five seconds for its alert when it
// closes, and then one that is past. A peer that reads slowly gets all of it.
func TestDeadlinesDoNotConcernWhatWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		taken, err := fillUp(c)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(5*time.Second)))
		_, err = c.Write([]byte("an alert"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetWriteDeadline(time.Now()))
		require.NoError(t, c.Close())
		time.Sleep(lingerTime - 1)
		got, err := io.ReadAll(peer)
		require.NoError(t, err)
		require.Len(t, got, taken)
	})
}

func TestAClosedConnectionTakesNoDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		_, err := c.Write([]byte("nobody reads this"))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.SetDeadline(time.Time{}), net.ErrClosed)
		require.ErrorIs(t, c.SetWriteDeadline(time.Time{}), net.ErrClosed)
		time.Sleep(lingerTime)
		synctest.Wait()
		_, err = peer.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}
