package compare

import (
	"context"
	"sync"
	"time"

	"kontiki/internal/bench/load"
	"kontiki/internal/bench/member"
)

// Column is a system, and the way to it that is measured.
type Column struct {
	Name   string
	system string // of its members
	own    bool   // loaded inside the leader's process, else through client/v3 from this one
	binary string // the program whose members it has
}

// driver loads a cluster the way a column says.
type driver interface {
	load(ctx context.Context, r member.Request) (load.Measured, error)
	fanOut(ctx context.Context, each time.Duration) (load.Measured, error)
	// firstWrite returns when one of the members has accepted a write.
	firstWrite(ctx context.Context, members []int) error
	close()
}

// ownDriver has a member's process load itself.
type ownDriver struct {
	cl    *cluster
	which int // of the members
}

func (d ownDriver) load(ctx context.Context, r member.Request) (load.Measured, error) {
	r.Do = "load"
	return d.ask(ctx, d.which, r)
}

func (d ownDriver) fanOut(ctx context.Context, each time.Duration) (load.Measured, error) {
	return d.ask(ctx, d.which, member.Request{Do: "watch", Each: each})
}

func (d ownDriver) firstWrite(ctx context.Context, members []int) (err error) {
	answers := make(chan error, len(members))
	for _, m := range members {
		go func() {
			_, err := d.ask(ctx, m, member.Request{Do: "firstWrite"})
			answers <- err
		}()
	}
	for range members {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

// ask gives up when the context ends; the member is killed then anyway.
func (d ownDriver) ask(ctx context.Context, which int, r member.Request) (load.Measured, error) {
	stop := context.AfterFunc(ctx, d.cl.processes[which].kill)
	defer stop()
	return d.cl.processes[which].ask(r)
}

func (ownDriver) close() {}

// clientDriver loads the leader from this process, over some connections.
type clientDriver struct {
	cl         *cluster
	perConn    int
	mu         sync.Mutex // guards connections
	connection member.Fronts
}

// connections returns as many as n clients use.
func (d *clientDriver) connections(n int) (member.Fronts, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n = (n + d.perConn - 1) / d.perConn
	for len(d.connection) < n {
		f, err := dial(d.cl.clients[d.cl.leader].client.Endpoints()[0])
		if err != nil {
			return nil, err
		}
		d.connection = append(d.connection, f)
	}
	return d.connection[:n], nil
}

func (d *clientDriver) load(ctx context.Context, r member.Request) (load.Measured, error) {
	shared, err := d.connections(r.Clients)
	if err != nil {
		return load.Measured{}, err
	}
	for _, f := range shared { // a connection is made when it is first used
		if err := f.Get(ctx, member.KeyNumber(0), true); err != nil {
			return load.Measured{}, err
		}
	}
	return member.Load(ctx, shared, r)
}

func (d *clientDriver) fanOut(ctx context.Context, each time.Duration) (load.Measured, error) {
	shared, err := d.connections(member.Watchers)
	if err != nil {
		return load.Measured{}, err
	}
	return member.FanOut(ctx, shared, each)
}

func (d *clientDriver) firstWrite(ctx context.Context, members []int) error {
	var survivors member.Fronts
	for _, m := range members {
		survivors = append(survivors, d.cl.clients[m])
	}
	return member.FirstWrite(ctx, survivors)
}

func (d *clientDriver) close() {
	for _, f := range d.connection {
		_ = f.(grpcFront).client.Close()
	}
}
