package controllers

import (
	"context"
	"time"

	"kontiki/controllers/leader"
)

// A Service must not send to a pod that is dead, also when the server whose controllers see to that is the one that died with
// it. So the reconcilers of Services have a Lease of their own that is soon over, and all servers keep what they read at hand:
// a takeover costs no list. Together with what watches and service proxies need, a dead pod is out of the rules of all nodes
// within five seconds of its death, or of the moment in which there is a quorum again (internal/e2e.TestLabSoak).
//
// What is at hand may be a little behind what the leader before wrote. For these reconcilers that does no harm: what they write
// follows from what they read alone, an update of what has changed since is refused (resourceVersion), and the events that are
// on their way set right the rest. Others remember what they did (ownWrites) or give away what there is once (addresses): they
// begin with a list that is newer than their Lease, and have the usual one of 15 seconds.

const (
	// endpointsLease is how long the Lease of the reconcilers of Services is valid. It costs a write a second.
	endpointsLease = 3 * time.Second
	// endpointsRetryMax is how long a Service waits that could not be written, as there was no quorum for example.
	endpointsRetryMax = time.Second
)

// runWarm runs the reconcilers of Services while this process leads, and keeps their caches all the time.
func runWarm(ctx context.Context, config Config) error {
	elector, err := leader.New(leader.Config{
		REST: config.REST, Name: "kontiki-endpoints", Identity: config.Identity, Duration: endpointsLease, Log: config.Log,
	})
	if err != nil {
		return err
	}
	config.REST = elector.REST()
	m, err := newManager(config)
	if err != nil {
		return err
	}
	m.retryMax = endpointsRetryMax
	core, discovery := m.shared.Core().V1(), m.shared.Discovery().V1()
	core.Services().Informer() // asked for, it is one of those that Start starts
	core.Pods().Informer()
	core.Nodes().Informer()
	core.Endpoints().Informer()
	discovery.EndpointSlices().Informer()
	defer m.broadcaster.Shutdown()
	caches, stop := context.WithCancel(context.WithoutCancel(ctx)) // a term may begin just when ctx ends, and listens to them
	m.shared.Start(caches.Done())
	defer m.shared.Shutdown()
	defer stop()
	return elector.Run(ctx, func(ctx context.Context) error {
		m.controllers = nil
		if err := m.addAll(ofServices); err != nil { // their handlers see all that there is anew
			return err
		}
		m.shared.WaitForCacheSync(ctx.Done())
		if ctx.Err() == nil {
			m.work(ctx)
		}
		return nil
	})
}
