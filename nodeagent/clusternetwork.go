package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"kontiki/nodeagent/announce"
	"kontiki/nodeagent/dns"
	"kontiki/nodeagent/network"
	"kontiki/nodeagent/nftables"
	"kontiki/nodeagent/policy"
	"kontiki/nodeagent/proxy"
)

// ClusterNetwork is what an agent must know to make Services and their names reachable on its node.
type ClusterNetwork struct {
	// ServiceCIDRs are the ranges of cluster IPs, one for each IP family; PodCIDRs those of the pods of all nodes.
	ServiceCIDRs, PodCIDRs []netip.Prefix
	// DNS are the addresses at which the node serves DNS to its pods, those of the Service kube-system/kube-dns.
	// None: it serves none, and pods use the host's resolvers.
	DNS []netip.Addr
	// ForeignPods leaves the way to the pods of other nodes to whoever makes the pod network.
	ForeignPods bool
	// NoPolicies leaves NetworkPolicies to somebody else.
	NoPolicies bool
}

// servicesLock is the socket that the one agent holds which serves Services in a network namespace. Abstract sockets are per
// namespace, and go with their process.
const servicesLock = "@kontiki/services"

// clusterNetwork is the parts of a node's network that follow the API.
type clusterNetwork struct {
	peers *peerRoutes
	proxy *proxy.Proxy     // nil where another agent serves Services
	rules *policy.Enforcer // nil there, too, and where NetworkPolicies are somebody else's
	names *dns.Server      // nil where its addresses cannot be had
	lock  net.Listener
	// balancers announces the addresses of load balancers; nil where Services cannot be reached.
	balancers *announce.Announcer

	packets   []net.PacketConn
	listeners []net.Listener
	addresses []netip.Addr // on the loopback interface
}

// openClusterNetwork prepares Services and DNS, as far as this machine can have them: pods run without, too. What it lacks
// is logged. factory, and the informer of the node's pods, must not have started.
func (a *Agent) openClusterNetwork(factory informers.SharedInformerFactory, pods cache.SharedIndexInformer) *clusterNetwork {
	n := &clusterNetwork{}
	if a.cfg.ClusterNetwork == nil {
		return n
	}
	var err error
	if n.lock, err = net.Listen("unix", servicesLock); err != nil {
		a.log.Warn("another agent on this machine serves Services and DNS: pods of this one do without", "err", err)
		return n
	}
	if !a.cfg.ClusterNetwork.ForeignPods {
		if n.peers, err = newPeerRoutes(a.cfg.NodeName, factory.Core().V1().Nodes().Informer(), a.log); err != nil {
			a.log.Warn("pods of other nodes cannot be reached", "err", err)
		}
	}
	if err := network.EnableServices(); err != nil {
		a.log.Warn("pods of this node may not reach each other through Services", "err", err)
	}
	rules, err := proxy.New(proxy.Config{
		Node: a.cfg.NodeName, ServiceCIDRs: a.cfg.ClusterNetwork.ServiceCIDRs, PodCIDRs: a.cfg.ClusterNetwork.PodCIDRs,
		Informers: factory, Log: a.cfg.Log,
	})
	if err != nil {
		a.log.Warn("Services cannot be reached on this node", "err", err)
	} else {
		n.proxy = rules
		if n.balancers, err = announce.New(announce.Config{
			Node: a.cfg.NodeName, Client: a.client, Informers: factory, Events: a.recorder, Ready: rules.Written(), Log: a.cfg.Log,
		}); err != nil {
			a.log.Warn("addresses of load balancers are not announced by this node", "err", err)
		}
	}
	n.rules = a.openPolicies(factory, pods)
	if err := n.openDNS(a, factory); err != nil {
		a.log.Warn("this node serves no DNS: its pods use the host's resolvers", "err", err)
		n.closeSockets()
		n.names = nil
		return n
	}
	for _, address := range a.cfg.ClusterNetwork.DNS {
		a.cfg.ClusterDNS = append(a.cfg.ClusterDNS, address.String())
	}
	return n
}

// openDNS takes the addresses and ports of DNS.
func (n *clusterNetwork) openDNS(a *Agent, factory informers.SharedInformerFactory) error {
	addresses := a.cfg.ClusterNetwork.DNS
	upstreams, err := dns.HostUpstreams(a.cfg.ResolvConf, addresses)
	if err != nil {
		a.log.Warn("names outside the cluster cannot be looked up", "file", a.cfg.ResolvConf, "err", err)
	}
	for _, address := range addresses {
		if err := network.AddLocalAddress(address); err != nil {
			return err
		}
		n.addresses = append(n.addresses, address)
		at := net.JoinHostPort(address.String(), strconv.Itoa(dnsPort))
		packets, err := net.ListenPacket("udp", at)
		if err != nil {
			return err
		}
		n.packets = append(n.packets, packets)
		listener, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		n.listeners = append(n.listeners, listener)
	}
	n.names, err = dns.New(dns.Config{
		Domain: a.cfg.ClusterDomain, Addresses: addresses, Upstreams: upstreams, Informers: factory, Log: a.cfg.Log,
	})
	return err
}

// dnsPort is where names are asked for (RFC 1035 section 4.2).
const dnsPort = 53

// run keeps rules and answers queries until ctx ends. The rules stay then, so that Services work without the agent; DNS
// goes with it. What fails is logged: the node's pods are more important.
func (n *clusterNetwork) run(ctx context.Context, log *slog.Logger) {
	var parts sync.WaitGroup
	start := func(name string, run func() error) {
		parts.Go(func() {
			if err := run(); err != nil {
				log.Error("part of the cluster network failed", "part", name, "err", err)
			}
		})
	}
	if n.peers != nil {
		start("routes to other nodes", func() error { return n.peers.run(ctx) })
	}
	if n.proxy != nil {
		start("service proxy", func() error { return n.proxy.Run(ctx) })
	}
	if n.balancers != nil {
		start("load balancer addresses", func() error { return n.balancers.Run(ctx) })
	}
	if n.rules != nil {
		start("NetworkPolicies", func() error { return n.rules.Run(ctx) })
	}
	if n.names != nil {
		start("DNS", func() error { return n.names.Serve(ctx, n.packets, n.listeners) })
	}
	parts.Wait()
	n.closeSockets()
	if n.lock != nil {
		n.lock.Close()
	}
}

func (n *clusterNetwork) closeSockets() {
	for _, c := range n.packets {
		c.Close()
	}
	for _, l := range n.listeners {
		l.Close()
	}
	for _, address := range n.addresses {
		_ = network.RemoveLocalAddress(address) // a machine may keep it: nobody listens there
	}
	n.packets, n.listeners, n.addresses = nil, nil, nil
}

// RemoveServiceRules takes the rules of Services and NetworkPolicies from this machine, for hosts that stop the containers too and want nothing
// left; not while another agent needs them.
func RemoveServiceRules(ctx context.Context) error {
	lock, err := net.Listen("unix", servicesLock)
	if err != nil {
		return nil
	}
	defer lock.Close()
	if err := proxy.Remove(ctx); err != nil && !errors.Is(err, nftables.ErrUnavailable) {
		return fmt.Errorf("rules of Services: %w", err)
	}
	if err := policy.Remove(ctx); err != nil && !errors.Is(err, nftables.ErrUnavailable) {
		return fmt.Errorf("rules of NetworkPolicies: %w", err)
	}
	return network.RemoveAccepting(ctx)
}
