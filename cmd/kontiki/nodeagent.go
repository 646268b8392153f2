package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"

	"kontiki/internal/apiclient"
	"kontiki/internal/control"
	"kontiki/internal/livetls"
	"kontiki/internal/pki"
	"kontiki/nodeagent"
	"kontiki/nodeagent/runtime"
	"kontiki/nodeagent/simulated"
)

// agentHost is what a node agent needs from the process that it runs in.
type agentHost struct {
	*process
	options *options
	log     *slog.Logger
	dir     *dataDir
	pki     *pki.PKI
	control *control.Server
	servers *apiclient.Servers
	images  atomic.Pointer[runtime.Runtime] // keeps images; nil before it runs, and where another does

	stopContainers bool // when the agent has stopped, stop what it ran
}

// nodeCredentials is how an agent calls the API server, and is called.
type nodeCredentials struct {
	client  livetls.Source
	serving *tls.Config
}

// issuedHere are the credentials of this node where the cluster's authority is at hand.
func (h *agentHost) issuedHere() (nodeCredentials, error) {
	o := h.options.node
	if !o.enabled {
		return nodeCredentials{}, nil
	}
	if _, _, err := h.pki.Node(o.name, o.netIPs()); err != nil {
		return nodeCredentials{}, err
	}
	client := h.pki.Live(func() *tls.Config { return h.pki.NodeClient(o.name) })
	return nodeCredentials{client: client, serving: h.pki.AgentServing(o.name)}, nil
}

// knownServers are the API servers that this process has been told of, or has learned of before.
func (h *agentHost) knownServers(c apiclient.ServersConfig) *apiclient.Servers {
	c.Identity, c.File, c.Log = h.options.node.name, h.dir.join("servers.json"), h.log.With("component", "servers")
	return apiclient.OpenServers(c)
}

// startAgent starts the container runtime, then the agent.
func (h *agentHost) startAgent(credentials nodeCredentials) error {
	o := h.options.node
	if !o.enabled {
		return nil
	}
	listener, err := listen(h.options.bindAddress, o.agentPort, "agent-port")
	if err != nil {
		return err
	}
	conn, err := h.openRuntime()
	if err != nil {
		listener.Close()
		return err
	}
	h.onStop(func() error {
		if !h.stopContainers {
			return nil
		}
		if o.runtime == "simulated" {
			return stopPods(h.ctx, conn)
		}
		return h.removePods(conn)
	})
	labels, noLabels := h.options.ingress.nodeLabels()
	agent, err := nodeagent.New(nodeagent.Config{
		ClusterNetwork: h.clusterNetwork(),
		NodeName:       o.name,
		NodeIPs:        o.ips,
		DataDir:        h.dir.join("agent"),
		REST:           apiclient.Config(h.servers.Live(credentials.client), "kontiki/agent"),
		Runtime:        conn,
		ServingTLS:     credentials.serving,
		Listen:         listener,
		NoMounts:       o.runtime == "simulated",
		StatusOnly:     o.runtime == "simulated",
		ClusterDomain:  h.options.network.clusterDomain,
		Labels:         labels,
		NoLabels:       noLabels,
		Log:            h.log,
	})
	if err != nil {
		listener.Close()
		return fmt.Errorf("node agent: %w", err)
	}
	h.start(part{"node agent", agent.Run})
	return nil
}

// removePods stops the containers of a node whose agent does not run, and removes what the agent made for them.
func (h *agentHost) removePods(conn grpc.ClientConnInterface) error {
	return errors.Join(stopPods(h.ctx, conn), nodeagent.UnmountVolumes(h.dir.join("agent")), nodeagent.RemoveServiceRules(h.ctx))
}

// clusterNetwork is what the agent needs for Services; nil where pods are only simulated.
func (h *agentHost) clusterNetwork() *nodeagent.ClusterNetwork {
	if h.options.node.runtime == "simulated" {
		return nil
	}
	o := h.options.network
	return &nodeagent.ClusterNetwork{
		ServiceCIDRs: o.serviceCIDRs,
		PodCIDRs:     o.clusterCIDRs,
		DNS:          o.dnsIPs(),
		ForeignPods:  h.options.node.cni.foreign(),
		NoPolicies:   !h.options.node.networkPolicy,
	}
}

// openRuntime opens what --node-runtime names and returns a connection to its CRI services.
func (h *agentHost) openRuntime() (grpc.ClientConnInterface, error) {
	if err := os.MkdirAll(h.dir.join("agent"), 0o700); err != nil {
		return nil, err
	}
	if socket, ok := strings.CutPrefix(h.options.node.runtime, "unix://"); ok {
		conn, err := dialRuntime(socket)
		if err != nil {
			return nil, fmt.Errorf("runtime %s: %w", socket, err)
		}
		h.onStop(conn.Close)
		return conn, nil
	}
	if h.options.node.runtime == "simulated" {
		return h.openSimulated()
	}
	return h.openBuiltIn()
}

func (h *agentHost) openSimulated() (grpc.ClientConnInterface, error) {
	r, err := simulated.New(simulated.Config{
		StateFile: h.dir.join("agent", "simulated.json"),
		Log:       h.log.With("component", "runtime"),
	})
	if err != nil {
		return nil, err
	}
	h.onStop(r.Close)
	return r.Conn(), nil
}

func (h *agentHost) openBuiltIn() (grpc.ClientConnInterface, error) {
	o := h.options.node
	r, err := runtime.New(runtime.Config{
		Root:         h.dir.join("agent"),
		StateDir:     h.dir.join("agent", "runtime"),
		RuncPath:     o.runc,
		ShimPath:     beside("kontiki-shim"),
		CgroupRoot:   o.cgroupRoot,
		CNIBinDirs:   o.cni.binDirs(),
		CNIConfDir:   o.cni.confDir,
		ForeignCNI:   o.cni.foreign(),
		ClusterCIDRs: h.options.network.clusterCIDRs,
		Address:      netip.MustParseAddr(o.ip),
		Log:          h.log.With("component", "runtime"),
	})
	if err != nil {
		return nil, err
	}
	h.onStop(r.Close)
	h.importBuiltImages(r)
	h.images.Store(r)
	h.start(part{"CRI socket", func(ctx context.Context) error { return r.ServeUnix(ctx, h.dir.join(criSocket)) }})
	return r.Conn(), nil
}

// importImages is what the control socket offers, which may be open before the runtime is.
func (h *agentHost) importImages(ctx context.Context, archive io.Reader) ([]string, error) {
	r := h.images.Load()
	if r == nil {
		return nil, errors.New("this process keeps no images")
	}
	return importArchive(ctx, r, h.dir.join("agent"), archive)
}

// importBuiltImages loads the images that `make build` made. Without them a node works as well, so
// a failure is only logged.
func (h *agentHost) importBuiltImages(r *runtime.Runtime) {
	archives, _ := filepath.Glob(filepath.Join(beside("images"), "*.tar"))
	for _, path := range archives {
		if _, err := r.Images().Import(h.ctx, path); err != nil {
			h.log.Warn("image could not be imported", "path", path, "err", err)
		}
	}
}

// importArchive imports what it reads. The archive is put into a file first: its index may come last.
func importArchive(ctx context.Context, r *runtime.Runtime, dir string, archive io.Reader) ([]string, error) {
	f, err := os.CreateTemp(dir, "import-*.tar")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := io.Copy(f, archive); err != nil {
		return nil, err
	}
	images, err := r.Images().Import(ctx, f.Name())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, image := range images {
		if names = append(names, image.Tags...); len(image.Tags) == 0 {
			names = append(names, image.ID)
		}
	}
	return names, nil
}
