package apiclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/livetls"
)

// fakeServer is an HTTPS server that is ready, not ready, or hangs.
type fakeServer struct {
	*httptest.Server
	name  string
	state atomic.Int32 // an HTTP status of /readyz; 0 hangs
	posts atomic.Int32

	watches atomic.Int32 // an HTTP status of watches
	refused atomic.Int32 // how many of them had another one than 200
}

func startFake(t *testing.T, name string) *fakeServer {
	f := &fakeServer{name: name}
	f.state.Store(http.StatusOK)
	f.watches.Store(http.StatusOK)
	f.Server = httptest.NewUnstartedServer(f)
	f.EnableHTTP2 = true
	f.StartTLS()
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	state := int(f.state.Load())
	switch {
	case r.URL.Path == "/watch" && f.watches.Load() != http.StatusOK:
		f.refused.Add(1)
		w.WriteHeader(int(f.watches.Load()))
	case r.URL.Path == "/watch": // a line, and no more
		fmt.Fprintln(w, f.name)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case state == 0:
		<-r.Context().Done()
	case r.URL.Path == "/readyz":
		w.WriteHeader(state)
	case r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		f.posts.Add(1)
		fmt.Fprint(w, f.name, " ", string(body))
	default:
		fmt.Fprint(w, f.name)
	}
}

// startFakes returns three servers in the order in which the client prefers them.
func startFakes(t *testing.T, file string) (*Servers, livetls.Source, []*fakeServer) {
	fakes := []*fakeServer{startFake(t, "a"), startFake(t, "b"), startFake(t, "c")}
	var urls []string
	for _, f := range fakes {
		urls = append(urls, f.URL)
	}
	servers := OpenServers(ServersConfig{Given: urls, Identity: "n1", File: file})
	servers.period, servers.patience, servers.returnPeriod = 20*time.Millisecond, time.Second, 20*time.Millisecond
	list := servers.List()
	slices.SortFunc(fakes, func(a, b *fakeServer) int { return slices.Index(list, a.URL) - slices.Index(list, b.URL) })
	config := fakes[0].Client().Transport.(*http.Transport).TLSClientConfig.Clone() // all have the same certificate
	return servers, livetls.Static(&tls.Config{RootCAs: config.RootCAs, MinVersion: tls.VersionTLS12}), fakes
}

// keepHealthy has the servers looked after until the test ends.
func keepHealthy(t *testing.T, s *Servers, source livetls.Source) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.keepHealthy(ctx, source) }()
	t.Cleanup(func() { cancel(); <-done })
}

func client(s *Servers, source livetls.Source) *http.Client {
	return &http.Client{Transport: s.Live(source).Transport}
}

func get(t *testing.T, c *http.Client, path string) string {
	t.Helper()
	answer, err := c.Get("https://anywhere" + path)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(body)
}

// A server that refuses connections gets no request: reads and writes go to the next one, whole, and stay there.
func TestRefusedRequestsGoToTheNextServer(t *testing.T) {
	servers, source, fakes := startFakes(t, "")
	c := client(servers, source)
	require.Equal(t, fakes[0].name, get(t, c, "/"))
	stop := func(f *fakeServer) {
		f.CloseClientConnections()
		f.Close()
		c.CloseIdleConnections() // what is written to a connection that dies may have arrived
	}
	stop(fakes[0])
	answer, err := c.Post("https://anywhere/", "text/plain", strings.NewReader("kept"))
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, fakes[1].name+" kept", string(body))
	require.EqualValues(t, 1, fakes[1].posts.Load())
	require.Equal(t, fakes[1].URL, servers.Current())
	stop(fakes[1])
	require.Equal(t, fakes[2].name, get(t, c, "/"))
	stop(fakes[2])
	_, err = c.Get("https://anywhere/")
	require.ErrorContains(t, err, "connection refused")
}

// A watch of a server that hangs, or is not ready, is cut, and begins again at one that is ready; when the first one is
// well again the client returns to it, and the watch that runs elsewhere stays.
func TestWatchesMove(t *testing.T) {
	for _, state := range []int{0, http.StatusInternalServerError} {
		t.Run(fmt.Sprint(state), func(t *testing.T) {
			servers, source, fakes := startFakes(t, "")
			servers.patience = 200 * time.Millisecond
			keepHealthy(t, servers, source)
			c := client(servers, source)
			watch := func() (string, *bufio.Reader) {
				answer, err := c.Get("https://anywhere/watch")
				require.NoError(t, err)
				t.Cleanup(func() { answer.Body.Close() })
				lines := bufio.NewReader(answer.Body)
				name, err := lines.ReadString('\n')
				require.NoError(t, err)
				return strings.TrimSpace(name), lines
			}
			name, lines := watch()
			require.Equal(t, fakes[0].name, name)
			fakes[0].state.Store(int32(state))
			_, err := lines.ReadString('\n')
			require.Error(t, err, "it is cut")
			require.NotEqual(t, fakes[0].URL, servers.Current())
			name, lines = watch()
			require.NotEqual(t, fakes[0].name, name)

			ended := make(chan struct{})
			go func() { defer close(ended); _, _ = lines.ReadString('\n') }()
			fakes[0].state.Store(http.StatusOK)
			require.Eventually(t, func() bool { return servers.Current() == fakes[0].URL }, time.Minute, time.Millisecond)
			require.Equal(t, fakes[0].name, get(t, c, "/"))
			select {
			case <-ended:
				require.Fail(t, "the watch should have stayed")
			default:
			}
		})
	}
}

// When no server is ready, as in an election, the client stays where it is.
func TestNobodyIsReady(t *testing.T) {
	servers, source, fakes := startFakes(t, "")
	for _, f := range fakes {
		f.state.Store(http.StatusInternalServerError)
	}
	h := &health{servers: servers, transport: servers.transport(source), gone: map[string]time.Time{}}
	for range 5 {
		h.look(t.Context())
		require.Equal(t, fakes[0].URL, servers.Current())
	}
	fakes[2].state.Store(http.StatusOK)
	h.look(t.Context())
	require.Equal(t, fakes[2].URL, servers.Current())
}

// One look is enough to leave a server that says nothing, if another one answers; if none does, as when this machine is what is
// slow, nothing is gained by it.
func TestSilence(t *testing.T) {
	servers, source, fakes := startFakes(t, "")
	servers.patience = 200 * time.Millisecond
	for _, f := range fakes {
		f.state.Store(0)
	}
	h := &health{servers: servers, transport: servers.transport(source), gone: map[string]time.Time{}}
	h.look(t.Context())
	require.Equal(t, fakes[0].URL, servers.Current())
	fakes[1].state.Store(http.StatusOK)
	fakes[2].state.Store(http.StatusInternalServerError)
	require.Eventually(t, func() bool { // again only if this machine is so slow that nobody answers in time
		h.look(t.Context())
		return servers.Current() == fakes[1].URL
	}, time.Minute, time.Millisecond)
}

// Clients are spread over the servers; when one goes, its clients are spread over the others, and nobody else moves.
func TestClientsAreSpread(t *testing.T) {
	all := []string{"https://10.0.0.1:6443", "https://10.0.0.2:6443", "https://10.0.0.3:6443"}
	before, after := map[string]int{}, map[string]int{}
	for i := range 300 {
		name := fmt.Sprint("worker-", i)
		first, then := rank(name, all)[0], rank(name, all[1:])[0]
		before[first]++
		if first == all[0] {
			after[then]++
		} else {
			require.Equal(t, first, then)
		}
	}
	for _, url := range all {
		require.InDelta(t, 100, before[url], 30, "%v", before)
	}
	require.InDelta(t, before[all[0]]/2, after[all[1]], 25, "%v", after)
}

// What was learned is there at the next start, when the server that was given is gone; those that were live once come last.
func TestServersAreRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent", "servers.json")
	given := ServersConfig{Given: []string{"https://given:6443"}, Identity: "n1", File: file}
	s := OpenServers(given)
	require.Equal(t, []string{"https://given:6443"}, s.List())
	s.learn([]string{"https://a:6443", "https://b:6443"})
	require.Contains(t, []string{"https://a:6443", "https://b:6443"}, s.Current())
	s.learn(nil)
	s.learn([]string{"https://c:6443"})
	require.Equal(t, []string{"https://c:6443", "https://given:6443", "https://a:6443", "https://b:6443"}, s.List())

	require.Equal(t, s.List(), OpenServers(given).List())
	given.Local = "https://127.0.0.1:6443"
	require.Equal(t, given.Local, OpenServers(given).Current())
}
