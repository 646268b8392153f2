package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/vishvananda/netns"

	"kontiki/internal/lab"
)

// reach knows when the machines of a lab could do something about a pod's death: when their kontiki ran, and some API server that
// has a quorum answered them. It asks four times a second, from the network namespace of each.
type reach struct {
	hosts map[string]lab.Host

	mu     sync.Mutex // guards what follows
	failed map[string][]interval
	asked  map[string]time.Time // when the last question that has an answer, or none in time, was put
}

type interval struct{ from, to time.Time }

const (
	reachPeriod   = 250 * time.Millisecond
	reachPatience = time.Second
)

// watchReach asks until ctx ends.
func watchReach(ctx context.Context, l *labCLI, users *sync.WaitGroup) *reach {
	opened, err := lab.Open(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	r := &reach{hosts: map[string]lab.Host{}, failed: map[string][]interval{}, asked: map[string]time.Time{}}
	for _, h := range opened.Hosts {
		r.hosts[h.Name] = *h
	}
	for name := range r.hosts {
		users.Go(func() {
			client := r.client(name)
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				r.ask(name, client)
				pauseFor(ctx, reachPeriod)
			}
		})
	}
	return r
}

// client is one that calls from a machine.
func (r *reach) client(machine string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = inMachine(machine, func() error {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return conn, err
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it asks whether somebody is there, and believes nothing else
	}}
}

// inMachine calls f on a thread in the machine's network namespace, which ends with it.
func inMachine(machine string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		space, err := netns.GetFromName("kontiki-lab-" + machine)
		if err == nil {
			defer space.Close()
			err = netns.Set(space)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// ask puts one question, and notes for how long there was no good answer.
func (r *reach) ask(machine string, client *http.Client) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), reachPatience)
	defer cancel()
	ok := r.runs(ctx, machine) && r.served(ctx, client)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[machine] = began
	if ok {
		return
	}
	last := r.failed[machine]
	if n := len(last); n > 0 && began.Sub(last[n-1].to) <= 2*reachPeriod { // still
		last[n-1].to = time.Now()
		return
	}
	r.failed[machine] = append(last, interval{began, time.Now()})
}

// runs says whether the machine's kontiki answers on the agent's port: a process that is paused has a port, and shakes no hands.
func (r *reach) runs(ctx context.Context, machine string) bool {
	err := inMachine(machine, func() error {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(r.hosts[machine].Address, "10250"))
		if err == nil {
			conn.Close()
		}
		return err
	})
	return err == nil
}

// served says whether a server is ready, which one without a quorum is not.
func (r *reach) served(ctx context.Context, client *http.Client) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan bool, len(soakMachines))
	servers := 0
	for _, h := range r.hosts {
		if !h.Server {
			continue
		}
		servers++
		go func() {
			q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(h.Address, "6443")+"/readyz", nil)
			if err != nil {
				answers <- false
				return
			}
			answer, err := client.Do(q)
			if err == nil {
				answer.Body.Close()
			}
			answers <- err == nil && answer.StatusCode == http.StatusOK
		}()
	}
	for range servers {
		if <-answers {
			return true
		}
	}
	return false
}

// couldSince is the later of a moment and the last end, before another one, of a time in which a machine could do nothing. It
// waits for the answer to a question that is put after that.
func (r *reach) couldSince(ctx context.Context, machine string, since, now time.Time) time.Time {
	for {
		r.mu.Lock()
		known := r.asked[machine].After(now)
		for _, i := range r.failed[machine] {
			if i.from.Before(now) && i.to.After(since) {
				since = i.to
			}
		}
		r.mu.Unlock()
		if known || ctx.Err() != nil {
			return since
		}
		pauseFor(ctx, reachPeriod)
	}
}
