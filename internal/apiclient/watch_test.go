package apiclient

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// watchOf is a request as a reflector makes it.
func watchOf(t *testing.T, ctx context.Context) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://anywhere/watch?watch=true", nil)
	require.NoError(t, err)
	return r
}

// A watch is at its end when its server is lost, which is no error; the next one waits until there is a server that takes it.
func TestWatchesAreHeld(t *testing.T) {
	servers, source, fakes := startFakes(t, "")
	servers.patience = 200 * time.Millisecond
	keepHealthy(t, servers, source)
	c := client(servers, source)
	answer, err := c.Do(watchOf(t, t.Context()))
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	for _, f := range fakes {
		f.watches.Store(http.StatusServiceUnavailable)
		f.state.Store(http.StatusInternalServerError)
	}
	fakes[0].CloseClientConnections()
	rest, err := io.ReadAll(lines)
	require.NoError(t, err, "an end, and no error")
	require.Empty(t, rest)

	taken := make(chan *http.Response, 1)
	go func() {
		if answer, err := c.Do(watchOf(t, t.Context())); err == nil {
			taken <- answer
		}
	}()
	require.Eventually(t, func() bool { return fakes[0].refused.Load() > 0 }, time.Minute, time.Millisecond)
	require.Empty(t, taken, "nobody serves it")
	fakes[1].watches.Store(http.StatusOK)
	fakes[1].state.Store(http.StatusOK)
	select {
	case answer := <-taken:
		defer answer.Body.Close()
		name, err := bufio.NewReader(answer.Body).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fakes[1].name+"\n", name)
	case <-time.After(time.Minute):
		require.Fail(t, "it still waits")
	}
}

// What a server answers is heard: only that it cannot serve is not. A request that nobody waits for any more ends.
func TestWatchesHearAnswers(t *testing.T) {
	servers, source, fakes := startFakes(t, "")
	c := client(servers, source)
	for _, status := range []int32{http.StatusGone, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError} {
		fakes[0].watches.Store(status)
		answer, err := c.Do(watchOf(t, t.Context()))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.EqualValues(t, status, answer.StatusCode)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fakes[0].watches.Store(http.StatusGatewayTimeout)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Do(watchOf(t, ctx))
		ended <- err
	}()
	before := fakes[0].refused.Load()
	require.Eventually(t, func() bool { return fakes[0].refused.Load() > before }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// brokenAfter is a body that breaks off after a text.
type brokenAfter struct{ text string }

func (b *brokenAfter) Read(p []byte) (int, error) {
	n := copy(p, b.text)
	b.text = b.text[n:]
	if n == 0 {
		return 0, io.ErrClosedPipe
	}
	return n, nil
}

func (b *brokenAfter) Close() error { return nil }

// A watch in which nothing has happened does not end before client-go thinks that it was a watch.
func TestShortWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			text  string
			lasts time.Duration
		}{{"", shortWatch}, {"an event", 0}} {
			began := time.Now()
			body := &watched{ReadCloser: &brokenAfter{c.text}, done: t.Context().Done(), began: began}
			text, err := io.ReadAll(body)
			require.NoError(t, err)
			require.Equal(t, c.text, string(text))
			require.Equal(t, c.lasts, time.Since(began))
		}
		left := make(chan struct{})
		close(left)
		began := time.Now()
		_, err := (&watched{ReadCloser: &brokenAfter{}, done: left, began: began}).Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Zero(t, time.Since(began), "nobody waits for it")
	})
}
