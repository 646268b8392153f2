package controlplane

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kontiki/apiserver"
	"kontiki/apiserver/admission"
	"kontiki/apiserver/audit"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/apiserver/storage/encryption"
	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/joining"
	"kontiki/internal/pki"
	"kontiki/raftstore"
	"kontiki/raftstore/etcdapi"
)

// Config of a control plane.
type Config struct {
	// Dir holds the store, if it is in this process.
	Dir string
	// Outside names the endpoints of a store outside of this process; without any, a member runs here. Its
	// retention and log are those of this Config.
	Outside etcd.Config
	// PKI has the certificates of both ends.
	PKI *pki.PKI
	// Listener is where the API server is served; the control plane closes it.
	Listener net.Listener
	// PeerListener is where the other members reach the one here; the control plane closes it. Nil: it stays alone.
	PeerListener net.Listener
	// PeerAddress is the host and port that they dial; by default that of PeerListener.
	PeerAddress string
	// NodeName is the member's name in the store's cluster, and a name of its certificate.
	NodeName string
	// Join has the addresses (host and port) of members whose cluster a new store joins, with the same PKI; without any
	// it is a cluster of its own.
	Join []string
	// NoBootstrap keeps a new store from being a cluster of its own even if Join names nobody.
	NoBootstrap bool
	// ClientListener is where the store's etcd API is served; the control plane closes it. Nil: it is not.
	ClientListener net.Listener
	// AdvertiseAddress is where pods reach the API server, at the listener's port. No address means
	// that the kubernetes Service has no endpoint.
	AdvertiseAddress netip.Addr
	// ServiceCIDR and ClusterCIDR are the ranges of cluster IPs and of pods; SecondServiceCIDR that of the other IP
	// family. Zero values as in registry.Options.
	ServiceCIDR, SecondServiceCIDR, ClusterCIDR, SecondClusterCIDR netip.Prefix
	// ClusterDNS is where nodes serve DNS to their pods; see apiserver.Config.
	ClusterDNS []netip.Addr
	// Cluster is what machines are told that join; the control plane adds the members.
	Cluster joining.Cluster
	// HistoryRetention is how long revisions can be read and watched from; 0 means for ever.
	HistoryRetention time.Duration
	// Access says who else is known to the API server and who else decides. The front proxy's CA is that of PKI if it has none.
	Access apiserver.AccessConfig
	// Admission says which admission plugins run.
	Admission admission.Config
	// Audit is what is recorded of requests, and where.
	Audit audit.Config
	// Encryption is how objects are encrypted in the store.
	Encryption encryption.Config
	// RaftLog, SnapshotEntries and SnapshotInterval are those of raftstore.Config; zero values mean its defaults.
	RaftLog          string
	SnapshotEntries  uint64
	SnapshotInterval time.Duration
	// Log is slog.Default() by default.
	Log *slog.Logger
}

// ControlPlane is a running store and API server.
type ControlPlane struct {
	config  Config
	kv      keyValueStore     // the store, one of the next two
	store   *raftstore.Member // nil if the store is outside
	outside *etcd.Store       // nil if a member runs here
	front   *etcdapi.Server   // the etcd API of the member here; nil if it is not served
	api     *apiserver.Server
	atRest  *encryption.Encryption // nil: nothing is encrypted

	cancel  context.CancelFunc // ends everything that Open started
	running sync.WaitGroup
	failed  chan error    // the API server ended by itself
	closing chan struct{} // closed by Close
}

// Open starts the store, then the API server.
func Open(config Config) (*ControlPlane, error) {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	c := &ControlPlane{config: config, failed: make(chan error, 1), closing: make(chan struct{})}
	if err := c.openStore(); err != nil {
		c.closeListeners()
		return nil, err
	}
	if err := c.openAPI(); err != nil {
		c.closeListeners()
		return nil, errors.Join(err, c.kv.Close())
	}
	c.serveClients()
	c.watchMembership()
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.running.Go(func() {
		if err := c.api.Serve(ctx, config.Listener); err != nil {
			c.fail(fmt.Errorf("API server: %w", err))
		}
	})
	return c, nil
}

func (c *ControlPlane) openStore() error {
	if len(c.config.Outside.Endpoints) > 0 {
		return c.openOutside()
	}
	id, err := memberID(c.config.Dir)
	if err != nil {
		return err
	}
	c.store, err = raftstore.Open(raftstore.Config{
		Dir: c.config.Dir, NodeID: id, Name: c.config.NodeName, Network: c.network(),
		Bootstrap: len(c.config.Join) == 0 && !c.config.NoBootstrap, Join: c.config.Join, JoinTimeout: joinTimeout,
		ClientURLs:       c.clientURLs(),
		HistoryRetention: c.config.HistoryRetention,
		RaftLog:          c.config.RaftLog,
		SnapshotEntries:  c.config.SnapshotEntries,
		SnapshotInterval: c.config.SnapshotInterval,
		Log:              c.config.Log.With("component", "store"),
	})
	if err != nil {
		return fmt.Errorf("store: %w", c.explain(err))
	}
	c.kv = c.store
	return nil
}

func (c *ControlPlane) openAPI() (err error) {
	c.config.Encryption.Log = c.config.Log.With("component", "encryption")
	if c.atRest, err = encryption.Open(c.config.Encryption); err != nil {
		return fmt.Errorf("encryption at rest: %w", err)
	}
	table := registry.Builtin(registry.Options{
		ServiceCIDR: c.config.ServiceCIDR, SecondServiceCIDR: c.config.SecondServiceCIDR,
		ClusterCIDR: c.config.ClusterCIDR, SecondClusterCIDR: c.config.SecondClusterCIDR,
	})
	access := c.config.Access
	if access.FrontProxy.CA == nil {
		access.FrontProxy.CA, access.FrontProxy.AllowedNames = c.config.PKI.FrontProxyCA, []string{frontProxyName}
	}
	c.api, err = apiserver.New(apiserver.Config{
		KV:                c.kv,
		Table:             table,
		TLS:               c.config.PKI.APIServing(),
		ClientCA:          c.config.PKI.CA,
		NodeTLS:           c.config.PKI.Live(c.config.PKI.AgentClient),
		FrontProxyTLS:     c.config.PKI.Live(c.config.PKI.FrontProxyClient),
		FrontProxyCA:      c.config.PKI.FrontProxyCA,
		FrontProxyName:    frontProxyName,
		Access:            access,
		Admission:         c.config.Admission,
		TokenKeys:         []crypto.Signer{c.config.PKI.AccountKeys().Signer},
		AdvertiseAddress:  c.config.AdvertiseAddress,
		AdvertisePort:     uint16(c.port()),
		ServiceCIDR:       c.config.ServiceCIDR,
		ClusterDNS:        c.config.ClusterDNS,
		SecondServiceCIDR: c.config.SecondServiceCIDR,
		Audit:             c.config.Audit,
		Paths:             c.paths(),
		Storage:           storage.Config{Encryption: c.atRest},
		Collectors:        c.collectors(),
		HistoryRetention:  c.config.HistoryRetention,
		Log:               c.config.Log.With("component", "apiserver"),
	})
	if err == nil {
		err = c.CertificatesChanged()
	}
	if err != nil {
		c.atRest.Close()
		return fmt.Errorf("API server: %w", err)
	}
	return nil
}

// CertificatesChanged takes what has changed in the PKI into use, as far as it is not looked up at each connection.
func (c *ControlPlane) CertificatesChanged() error {
	keys := c.config.PKI.AccountKeys()
	return c.api.SetTokenKeys(keys.Signer, keys.Others...)
}

// SecretToken implements controllers.SecretTokens.
func (c *ControlPlane) SecretToken(namespace, secret, account, accountUID string) (string, error) {
	return c.api.SecretToken(namespace, secret, account, accountUID)
}

// frontProxyName is the common name of the one certificate of the front proxy's authority.
const frontProxyName = "front-proxy-client"

// collectors are the metrics of the member here, and of encryption.
func (c *ControlPlane) collectors() []prometheus.Collector {
	list := c.atRest.Collectors()
	if c.store != nil {
		list = append(list, c.store.Collector())
	}
	return list
}

func (c *ControlPlane) port() int { return c.config.Listener.Addr().(*net.TCPAddr).Port }

// Store is the member that runs here; nil if the store is outside.
func (c *ControlPlane) Store() *raftstore.Member { return c.store }

// Failed delivers the error with which the API server ended by itself.
func (c *ControlPlane) Failed() <-chan error { return c.failed }

// readyPoll is how often WaitReady looks: in-process, so it costs next to nothing.
const readyPoll = 2 * time.Millisecond

// WaitReady waits until the API server is ready, as /readyz has it.
func (c *ControlPlane) WaitReady(ctx context.Context) error {
	if err := c.kv.WaitReady(ctx); err != nil {
		return fmt.Errorf("store: %w", c.explain(err))
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for !c.api.Ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("API server is not ready: %w", ctx.Err())
		case err := <-c.failed:
			return err
		case <-tick.C:
		}
	}
	return nil
}

// Close stops the API server, then the store.
func (c *ControlPlane) Close() error {
	close(c.closing)
	c.cancel()
	if c.front != nil {
		c.front.Close()
	}
	c.running.Wait()
	c.api.Close()
	c.atRest.Close()
	if err := c.kv.Close(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
