package nodeagent

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"kontiki/nodeagent/routes"
)

// peerRoutes keeps the routes to the pods of other nodes.
type peerRoutes struct {
	name   string
	nodes  cache.SharedIndexInformer
	synced cache.InformerSynced
	log    *slog.Logger
	wake   chan struct{} // holds one token while something may have changed
}

const (
	// routesSettle is how long changes are gathered before routes are looked at: a network that comes up has many.
	routesSettle = 50 * time.Millisecond
	// routesRepeat is how often they are looked at without a change, for what nobody announces.
	routesRepeat = 30 * time.Second
)

func newPeerRoutes(name string, nodes cache.SharedIndexInformer, log *slog.Logger) (*peerRoutes, error) {
	p := &peerRoutes{name: name, nodes: nodes, log: log, wake: make(chan struct{}, 1)}
	registration, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.changed() }, UpdateFunc: func(_, _ any) { p.changed() }, DeleteFunc: func(any) { p.changed() },
	})
	if err != nil {
		return nil, err
	}
	p.synced = registration.HasSynced
	return p, nil
}

func (p *peerRoutes) changed() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run keeps the routes until ctx ends. They stay then.
func (p *peerRoutes) run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), p.synced) {
		return nil
	}
	followed := make(chan error, 1)
	go func() { followed <- routes.Follow(ctx, p.changed) }()
	last := ""
	for ctx.Err() == nil {
		if err := p.apply(); err == nil {
			last = ""
		} else if err.Error() != last {
			last = err.Error()
			p.log.Warn("pods of some nodes are not reached", "err", err)
		}
		select {
		case <-p.wake:
			sleep(ctx, routesSettle)
		case <-time.After(routesRepeat):
		case <-ctx.Done():
		}
	}
	return <-followed
}

// apply has the kernel follow the Nodes.
func (p *peerRoutes) apply() error {
	var self routes.Node
	var peers []routes.Peer
	for _, obj := range p.nodes.GetStore().List() {
		n := obj.(*corev1.Node)
		addresses, cidrs := addressesOf(n), podCIDRsOf(n)
		switch {
		case n.Name == p.name:
			self = routes.Node{Addresses: addresses, PodCIDRs: cidrs}
		case len(cidrs) > 0:
			peers = append(peers, routes.Peer{Name: n.Name, Addresses: addresses, PodCIDRs: cidrs})
		}
	}
	return routes.Apply(self, peers)
}

func addressesOf(n *corev1.Node) (addresses []netip.Addr) {
	for _, a := range n.Status.Addresses {
		if address, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

func podCIDRsOf(n *corev1.Node) (cidrs []netip.Prefix) {
	for _, text := range n.Spec.PodCIDRs {
		if cidr, err := netip.ParsePrefix(text); err == nil {
			cidrs = append(cidrs, cidr)
		}
	}
	return cidrs
}
