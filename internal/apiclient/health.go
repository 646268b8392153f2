package apiclient

import (
	"context"
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
		case <-time.After(jittered(h.pause())):
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
	good       int  // how often in a row the preferred one was ready, that is not current
	lost       bool // nobody was ready when it looked last
	nextReturn time.Time
	gone       map[string]time.Time // since when a server is not on the list any more
}

// goodLimit is how often in a row, returnPeriod apart, the preferred server must be ready.
const goodLimit = 2

// pause is how long it waits before it looks again: not long while watches are held.
func (h *health) pause() time.Duration {
	if h.lost {
		return h.servers.period / 4
	}
	return h.servers.period
}

func (h *health) look(ctx context.Context) {
	h.cutGone()
	current := h.servers.Current()
	best, reason := h.compare(ctx, current)
	h.lost = best == ""
	switch {
	case h.lost || ctx.Err() != nil: // nobody is ready, as in an election: nothing is gained by going elsewhere
		return
	case best == current:
		h.maybeReturn(ctx, current)
	default:
		h.good = 0
		if h.servers.move(current, best, reason) {
			h.servers.cut(current) // watches begin again there
		}
	}
	h.servers.seenReady()
}

// compare asks the current server whether it is ready and, if it says no or nothing for a third of the patience, the others
// too. It returns the current one if that answers in time, or else the first of the others that did: when the machine of this
// client is what is slow, none does.
func (h *health) compare(ctx context.Context, current string) (best, reason string) {
	ctx, cancel := context.WithTimeout(ctx, h.servers.patience)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- h.ready(ctx, current) }()
	var err error
	select {
	case err = <-answered:
		if err == nil {
			return current, ""
		}
		return h.firstReady(ctx, current), err.Error()
	case <-time.After(h.servers.patience / 3):
	}
	other := h.firstReady(ctx, current)
	if err = <-answered; err == nil {
		return current, ""
	}
	return other, err.Error()
}

// ready asks a server for /readyz.
func (h *health) ready(ctx context.Context, server string) error {
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

// firstReady is the first on the list of the others that is ready, "" if none is. All are waited for.
func (h *health) firstReady(ctx context.Context, current string) string {
	others := slices.DeleteFunc(h.servers.List(), func(url string) bool { return url == current })
	answers := make([]error, len(others))
	var asked sync.WaitGroup
	for i, url := range others {
		asked.Go(func() { answers[i] = h.ready(ctx, url) })
	}
	asked.Wait()
	if best := slices.Index(answers, nil); best >= 0 {
		return others[best]
	}
	return ""
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
	ctx, cancel := context.WithTimeout(ctx, h.servers.patience)
	defer cancel()
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

func (s *Servers) snapshotClients() (clients []*balanced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.clients {
		if b := p.Value(); b != nil {
			clients = append(clients, b)
		}
	}
	return clients
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
