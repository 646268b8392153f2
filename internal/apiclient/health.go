package apiclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"kontiki/internal/livetls"
)

// Run keeps the servers: it looks whether the current one is ready, moves on when it is not, goes back to the preferred one
// when that is, and follows the list of servers, until ctx ends. It calls them with what source says.
func (s *Servers) Run(ctx context.Context, source livetls.Source) error {
	config := s.Live(source)
	defer config.Transport.(*balanced).CloseIdleConnections()
	var following sync.WaitGroup
	following.Go(func() { s.follow(ctx, config) })
	s.keepHealthy(ctx, source)
	following.Wait()
	return nil
}

func (s *Servers) keepHealthy(ctx context.Context, source livetls.Source) {
	h := &health{servers: s, transport: s.transport(source), gone: map[string]time.Time{}, nextReturn: time.Now().Add(jittered(s.returnPeriod))}
	defer h.transport.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.suspected:
		case <-time.After(jittered(s.period)):
		}
		h.look(ctx)
	}
}

// jittered is between half of a duration and one and a half: clients that have started together part.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// health is what Run has seen. One goroutine uses it.
type health struct {
	servers    *Servers
	transport  *balanced
	slow       int // how often in a row the current server has not answered in time
	good       int // how often in a row the preferred one was ready, that is not current
	nextReturn time.Time
	gone       map[string]time.Time // since when a server is not on the list any more
}

// slowLimit is how often in a row a server may not answer in time. One that refuses, or says that it is not ready, is
// left at once.
const slowLimit = 2

// goodLimit is how often in a row, returnPeriod apart, the preferred server must be ready.
const goodLimit = 2

func (h *health) look(ctx context.Context) {
	h.cutGone()
	current := h.servers.Current()
	err := h.ready(ctx, current)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		h.slow = 0
		h.maybeReturn(ctx, current)
	case errors.Is(err, context.DeadlineExceeded) && h.slow+1 < slowLimit:
		h.slow++
	default:
		h.moveOn(ctx, current, err)
	}
}

// ready asks a server for /readyz.
func (h *health) ready(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, h.servers.patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := h.transport.send(r, server)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", answer.Status)
	}
	return nil
}

// moveOn goes to the first of the other servers that is ready, and cuts the connections to the current one: watches
// begin again there. If no other is ready, as in an election, nothing is gained by it.
func (h *health) moveOn(ctx context.Context, current string, reason error) {
	others := slices.DeleteFunc(h.servers.List(), func(url string) bool { return url == current })
	answers := make([]error, len(others))
	var asked sync.WaitGroup
	for i, url := range others {
		asked.Go(func() { answers[i] = h.ready(ctx, url) })
	}
	asked.Wait()
	best := slices.Index(answers, nil)
	if best < 0 {
		return
	}
	h.slow, h.good = 0, 0
	if h.servers.move(current, others[best], reason.Error()) {
		h.servers.cut(current)
	}
}

// maybeReturn goes back to the server that this client prefers, now and then. What runs elsewhere ends there.
func (h *health) maybeReturn(ctx context.Context, current string) {
	preferred := h.servers.List()[0]
	if current == preferred {
		h.good = 0
		return
	}
	if time.Now().Before(h.nextReturn) {
		return
	}
	h.nextReturn = time.Now().Add(jittered(h.servers.returnPeriod))
	if h.ready(ctx, preferred) != nil {
		h.good = 0
		return
	}
	if h.good++; h.good >= goodLimit {
		h.servers.move(current, preferred, "preferred")
	}
}

// goneLimit is how long requests may take on a server that is not on the list any more: it is stopping, or dead.
const goneLimit = 10 * time.Second

// cutGone ends connections to servers that nobody looks after any more.
func (h *health) cutGone() {
	list, open := h.servers.List(), h.servers.open()
	for _, server := range open {
		if slices.Contains(list, server) && h.servers.expected(server) {
			delete(h.gone, server)
		} else if since, known := h.gone[server]; !known {
			h.gone[server] = time.Now()
		} else if time.Since(since) > goneLimit {
			h.servers.cut(server)
			delete(h.gone, server)
		}
	}
}

// expected says whether a server should be there: it is live, local, current, or was given.
func (s *Servers) expected(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return server == s.current || server == s.config.Local || slices.Contains(s.live, server) ||
		slices.Contains(s.config.Given, server)
}

func (s *Servers) snapshotClients() []*balanced {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.clients)
}

func (s *Servers) cut(server string) {
	for _, b := range s.snapshotClients() {
		b.cut(server)
	}
}

func (s *Servers) open() (servers []string) {
	for _, b := range s.snapshotClients() {
		servers = append(servers, b.open()...)
	}
	return unique(servers)
}
