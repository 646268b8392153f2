package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"k8s.io/client-go/rest"

	"kontiki/controllers"
	"kontiki/internal/apiclient"
	"kontiki/internal/control"
	"kontiki/internal/controlplane"
	"kontiki/internal/pki"
	"kontiki/scheduler"
)

// node is what `server` and `dev` run: a control plane and, if asked for, an agent.
type node struct {
	agentHost
	plane *controlplane.ControlPlane
}

// startNode starts everything and returns once the API server is ready. The rest (controllers,
// scheduler, agent) goes on starting beside it. On an error all that had started is stopped.
func startNode(ctx context.Context, o *options, log *slog.Logger) (*node, error) {
	n := &node{agentHost: agentHost{process: newProcess(ctx), options: o, log: log, control: &control.Server{}}}
	saveMemory(n.process, serverLeeway)
	for _, step := range []func(context.Context) error{n.openDir, n.meetCluster, n.openPKI, n.openPlane, n.startControl, n.waitReady, n.noteJoined, n.startServers, n.startLocalAgent, n.startClients} {
		if err := step(ctx); err != nil {
			return nil, joinStop(err, n.process)
		}
	}
	return n, nil
}

// joinStop stops a process that could not be started.
func joinStop(err error, p *process) error { return errors.Join(err, p.stop()) }

func (n *node) openDir(context.Context) (err error) {
	if n.dir, err = openDataDir(n.options.dataDir); err != nil {
		return err
	}
	n.onStop(n.dir.close)
	return nil
}

func (n *node) openPKI(context.Context) (err error) {
	o := n.options
	ips := o.node.netIPs()
	if bind := net.ParseIP(o.bindAddress); !bind.IsUnspecified() {
		ips = append(ips, bind)
	}
	n.pki, err = pki.Open(n.dir.join("pki"), pki.Options{
		NodeName:      o.node.name,
		NodeIPs:       ips,
		SANs:          o.api.tlsSANs,
		ServiceIP:     o.network.serviceIP(),
		ClusterDomain: o.network.clusterDomain,

		CertificateLife: o.api.certificateLife,
	})
	return err
}

func (n *node) openPlane(context.Context) (err error) {
	o := n.options
	listener, err := listen(o.bindAddress, o.api.httpsPort, "https-port")
	if err != nil {
		return err
	}
	client, err := n.listenClients()
	if err != nil {
		listener.Close()
		return err
	}
	peers, err := n.listenPeers()
	if err != nil {
		listener.Close()
		if client != nil {
			client.Close()
		}
		return err
	}
	address, _ := netip.ParseAddr(o.node.ip) // checked by complete
	if address.IsLoopback() {
		address = netip.Addr{} // Kubernetes does not allow loopback addresses as endpoints
	}
	n.plane, err = controlplane.Open(controlplane.Config{
		Dir:               n.dir.join("store"),
		Outside:           o.store.config,
		PKI:               n.pki,
		Listener:          listener,
		ClientListener:    client,
		PeerListener:      peers,
		PeerAddress:       net.JoinHostPort(o.node.ip, strconv.Itoa(o.store.peerPort)),
		NodeName:          o.node.name,
		Join:              o.store.members,
		NoBootstrap:       len(o.store.join) > 0,
		AdvertiseAddress:  address,
		ServiceCIDR:       o.network.serviceCIDRs[0],
		ClusterCIDR:       o.network.clusterCIDRs[0],
		ClusterDNS:        o.network.dnsIPs(),
		SecondServiceCIDR: second(o.network.serviceCIDRs),
		SecondClusterCIDR: second(o.network.clusterCIDRs),
		Cluster:           o.network.asCluster(),
		HistoryRetention:  o.store.historyRetention,
		Audit:             o.audit.config,
		Encryption:        o.encryption.config,
		Access:            o.access.config,
		Admission:         o.admit.config,
		RaftLog:           o.store.raftLog,
		SnapshotEntries:   o.store.snapshotCount,
		SnapshotInterval:  o.store.snapshotInterval,
		Log:               n.log,
	})
	if err != nil {
		return err
	}
	n.onStop(n.plane.Close)
	n.start(part{"certificates", func(ctx context.Context) error { n.pki.Keep(ctx, n.log, n.certificatesChanged); return ctx.Err() }})
	return n.writeKubeconfig()
}

func (n *node) writeKubeconfig() error {
	return n.pki.WriteKubeconfig(n.dir.join(adminKubeconfig), n.plane.URL(), n.pki.Client(pki.Admin))
}

// reloadCertificates takes files into use that `kontiki certs` has changed.
func (n *node) reloadCertificates(context.Context) error {
	changed, err := n.pki.Refresh()
	if changed {
		n.certificatesChanged()
	}
	return err
}

// certificatesChanged takes renewed certificates into use where nobody looks at them by himself.
func (n *node) certificatesChanged() {
	if err := errors.Join(n.plane.CertificatesChanged(), n.writeKubeconfig()); err != nil {
		n.log.Error("changed certificates are not used everywhere", "err", err)
	}
}

// identity is how one of pki's identities calls the API server at the time.
func (n *node) identity(name string) func() *tls.Config {
	return func() *tls.Config { return n.pki.APIClient(name) }
}

// startControl lets commands on this machine look into the store, also while it waits for a quorum.
func (n *node) startControl(context.Context) error {
	n.control.StoreStatus = n.plane.StoreStatus
	if member := n.plane.Store(); member != nil {
		n.control.Store = member
	}
	n.control.ImportImages = n.importImages
	n.control.ReloadCertificates = n.reloadCertificates
	n.control.StoreClientURL = func(context.Context) (string, error) { return n.plane.StoreClientURL() }
	n.start(part{"control socket", func(ctx context.Context) error { return n.control.Serve(ctx, n.dir.join(controlSocket)) }})
	return nil
}

func (n *node) waitReady(ctx context.Context) error { return n.plane.WaitReady(ctx) }

// listenPeers opens the port of the store's members, if there may be others.
func (n *node) listenPeers() (net.Listener, error) {
	o := n.options
	if o.store.peerPort == 0 || len(o.store.endpoints) > 0 {
		return nil, nil
	}
	return listen(o.bindAddress, o.store.peerPort, "peer-port")
}

// listenClients opens the port of the store's etcd API, if it is to have one. That the default port is
// taken, by an etcd for example, is no reason not to start.
func (n *node) listenClients() (net.Listener, error) {
	o := n.options
	if o.store.clientPort == 0 || len(o.store.endpoints) > 0 {
		return nil, nil
	}
	listener, err := listen(o.bindAddress, o.store.clientPort, "client-port")
	if err != nil && !o.store.portGiven {
		n.log.Warn("the store's etcd API is not served", "err", err)
		return nil, nil
	}
	return listener, err
}

// listen opens a TCP port; the error of one in use names the flag that changes it.
func listen(address string, port int, flag string) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is in use: stop what listens there or choose another with --%s", port, flag)
	}
	return listener, err
}

// startServers follows the cluster's API servers. The one here is preferred; the others stand in for it when it cannot serve.
func (n *node) startServers(context.Context) error {
	n.servers = n.knownServers(apiclient.ServersConfig{Local: n.plane.URL()})
	source := n.pki.Live(n.identity(pki.ControllerManager))
	n.start(part{"list of API servers", func(ctx context.Context) error { return n.servers.Run(ctx, source) }})
	return nil
}

func (n *node) startLocalAgent(context.Context) error {
	credentials, err := n.issuedHere()
	if err != nil {
		return err
	}
	return n.startAgent(credentials)
}

// startClients starts what only needs the API server. Where other servers may do the same on this store, one of them acts.
func (n *node) startClients(context.Context) error {
	client := func(name, identity string) *rest.Config {
		return apiclient.Config(n.servers.Live(n.pki.Live(n.identity(identity))), "kontiki/"+name)
	}
	elect := n.options.store.peerPort != 0 || len(n.options.store.endpoints) > 0
	if p, ok, err := n.ingressPart(client("ingress", pki.Ingress), elect); err != nil {
		return err
	} else if ok {
		n.start(p)
	}
	n.start(
		part{"controllers", func(ctx context.Context) error {
			return controllers.Run(ctx, controllers.Config{
				REST:        client("controllers", pki.ControllerManager),
				RootCA:      n.pki.CA,
				Signer:      n.pki,
				Tokens:      n.plane,
				LeaderElect: elect, Identity: n.options.node.name, NodeGrace: n.options.control.nodeGrace,
				LoadBalancerCIDRs: n.options.balancers.cidrs,
				Log:               n.log.With("component", "controllers"),
			})
		}},
		part{"scheduler", func(ctx context.Context) error {
			return scheduler.Run(ctx, scheduler.Config{
				REST:        client("scheduler", pki.Scheduler),
				LeaderElect: elect, Identity: n.options.node.name,
				Log: n.log.With("component", "scheduler"),
			})
		}},
		part{"API server", func(ctx context.Context) error {
			select {
			case err := <-n.plane.Failed():
				return err
			case <-ctx.Done():
				return nil
			}
		}},
	)
	return nil
}
