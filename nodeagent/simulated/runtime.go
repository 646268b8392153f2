package simulated

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Config of a simulated runtime. The zero value is usable.
type Config struct {
	// PodCIDR is used until UpdateRuntimeConfig names another. Default 10.244.0.0/24.
	PodCIDR string
	// StateFile keeps sandboxes and containers across restarts of the process. Empty: in memory only.
	StateFile string
	Log       *slog.Logger // nil discards
}

// Runtime implements the RuntimeService and the ImageService of CRI v1. It is safe for concurrent use.
type Runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	stateFile string
	log       *slog.Logger
	server    *grpc.Server
	conn      *grpc.ClientConn
	serving   sync.WaitGroup

	mu         sync.Mutex // guards everything below; no call blocks while holding it
	cidr       netip.Prefix
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]*runtimeapi.Image
	watchers   map[chan *runtimeapi.ContainerEventResponse]struct{}
	closed     chan struct{}
}

// New starts a simulated runtime, with the containers of its state file if there is one.
func New(cfg Config) (*Runtime, error) {
	if cfg.PodCIDR == "" {
		cfg.PodCIDR = "10.244.0.0/24"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cidr, err := netip.ParsePrefix(cfg.PodCIDR)
	if err != nil {
		return nil, fmt.Errorf("simulated runtime: pod CIDR: %w", err)
	}
	r := &Runtime{
		stateFile:  cfg.StateFile,
		log:        cfg.Log,
		cidr:       cidr.Masked(),
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*container{},
		images:     map[string]*runtimeapi.Image{},
		watchers:   map[chan *runtimeapi.ContainerEventResponse]struct{}{},
		closed:     make(chan struct{}),
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r, r.serve()
}

// serve opens the in-process gRPC connection that Conn hands out.
func (r *Runtime) serve() error {
	pipe := bufconn.Listen(256 << 10)
	r.server = grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(r.server, r)
	runtimeapi.RegisterImageServiceServer(r.server, r)
	r.serving.Go(func() {
		if err := r.server.Serve(pipe); err != nil {
			r.log.Error("simulated runtime stopped serving", "err", err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///simulated",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		r.server.Stop()
		r.serving.Wait()
		return fmt.Errorf("simulated runtime: connect: %w", err)
	}
	r.conn = conn
	return nil
}

// Conn is a CRI v1 client connection to this runtime, valid until Close.
func (r *Runtime) Conn() grpc.ClientConnInterface { return r.conn }

// Close ends all calls and timers. What the state file holds stays.
func (r *Runtime) Close() error {
	r.mu.Lock()
	select {
	case <-r.closed:
		r.mu.Unlock()
		return nil
	default:
		close(r.closed)
	}
	for _, c := range r.containers {
		c.stopTimer()
	}
	r.mu.Unlock()
	err := r.conn.Close()
	r.server.Stop()
	r.serving.Wait()
	return err
}

// Version names the runtime; the agent shows it in the Node's containerRuntimeVersion.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: "simulated", RuntimeVersion: "0.1.0", RuntimeApiVersion: "v1",
	}, nil
}

// Status reports a runtime and a network that are always ready.
func (r *Runtime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// RuntimeConfig says that there are no cgroups to agree on a driver for.
func (r *Runtime) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{
		CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig takes the pod CIDR for addresses of later sandboxes; existing ones keep theirs.
func (r *Runtime) UpdateRuntimeConfig(_ context.Context, req *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	text := req.GetRuntimeConfig().GetNetworkConfig().GetPodCidr()
	if text == "" {
		return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
	}
	text, _, _ = strings.Cut(text, ",") // of two ranges the first: simulated pods have one address
	cidr, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, fmt.Errorf("pod CIDR: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cidr = cidr.Masked()
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}

// Exec, Attach, PortForward and ExecSync are refused: there is no process.
func (r *Runtime) Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return nil, ErrOnlyStatus
}

// Attach is refused, as Exec is.
func (r *Runtime) Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, ErrOnlyStatus
}

// PortForward is refused, as Exec is.
func (r *Runtime) PortForward(context.Context, *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return nil, ErrOnlyStatus
}

// ExecSync is refused, as Exec is.
func (r *Runtime) ExecSync(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return nil, ErrOnlyStatus
}
