package nodeagent

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"kontiki/internal/kubeversion"
)

// Config of an Agent.
type Config struct {
	NodeName string // required
	// NodeIPs are the addresses that others reach this node by, one of an IP family; required, the first comes first in
	// the Node.
	NodeIPs []string
	DataDir string // required: volumes, logs and checkpoints live below it
	REST    *rest.Config
	// Runtime is a CRI v1 connection (RuntimeService and ImageService); the caller closes it.
	Runtime grpc.ClientConnInterface
	// ServingTLS has the server's certificate and the CA of the clients; it is made to require client certificates.
	ServingTLS *tls.Config
	// Listen is the socket of the agent's server; if nil, Address is listened on (default ":10250").
	Listen  net.Listener
	Address string

	// ClusterNetwork has the agent make Services and their names reachable; nil leaves that to others.
	ClusterNetwork *ClusterNetwork
	ClusterDNS     []string // empty: pods get the host's resolv.conf, or the DNS of ClusterNetwork
	ClusterDomain  string   // default "cluster.local"
	ResolvConf     string   // default /etc/resolv.conf
	// PodCIDR is told to the runtime until the Node has one of its own. May be empty.
	PodCIDR      string
	CgroupParent string // of all pods; empty leaves it to the runtime
	Labels       map[string]string
	// NoLabels are taken off the Node: those that this agent would have with another configuration.
	NoLabels []string
	Taints   []corev1.Taint
	MaxPods  int // default 110
	// NoMounts is for nodes that may not mount: a memory emptyDir is then an ordinary directory.
	NoMounts bool
	// StatusOnly is for a runtime whose containers do nothing (package simulated): running ones are taken for healthy
	// without a probe, and lifecycle hooks for done.
	StatusOnly bool
	// Version is the Node's kubeletVersion. Default kubeversion.Reported.
	Version string
	// Log files are rotated at LogMaxBytes (default 10 MiB), LogMaxFiles are kept (default 5).
	LogMaxBytes int64
	LogMaxFiles int
	Log         *slog.Logger // nil discards
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.NodeName == "":
		return c, fmt.Errorf("%w: no node name", ErrConfig)
	case len(c.NodeIPs) == 0 || slices.ContainsFunc(c.NodeIPs, func(ip string) bool { return net.ParseIP(ip) == nil }):
		return c, fmt.Errorf("%w: node IPs %q are not addresses", ErrConfig, c.NodeIPs)
	case c.DataDir == "":
		return c, fmt.Errorf("%w: no data directory", ErrConfig)
	case c.REST == nil || c.Runtime == nil || c.ServingTLS == nil:
		return c, fmt.Errorf("%w: API client, runtime and serving TLS are required", ErrConfig)
	}
	dir, err := filepath.Abs(c.DataDir) // mounts and log paths go to the runtime, which may be another process
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c.DataDir = dir
	setDefault(&c.Address, ":10250")
	setDefault(&c.ClusterDomain, "cluster.local")
	setDefault(&c.ResolvConf, "/etc/resolv.conf")
	setDefault(&c.Version, kubeversion.Reported)
	setDefault(&c.MaxPods, 110)
	setDefault(&c.LogMaxBytes, 10<<20)
	setDefault(&c.LogMaxFiles, 5)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, os.MkdirAll(c.DataDir, 0o755)
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}
