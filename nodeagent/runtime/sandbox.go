package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/network"
	"kontiki/nodeagent/runtime/shim"
)

// sandbox is a pod's shared surroundings: namespaces, addresses, /dev/shm and a few files.
type sandbox struct {
	dir    string
	rec    sandboxRecord // what changes, Stopped, Released and PausePID, is guarded by Runtime.mu
	config *runtimeapi.PodSandboxConfig

	// op is held over starting a pause process, stopping and removing, and shared with
	// nobody: one step at a time. It comes before any container's op.
	op sync.Mutex
}

// sandboxRecord is sandbox.json.
type sandboxRecord struct {
	ID        string          `json:"id"`
	Handler   string          `json:"handler,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	IPs       []netip.Addr    `json:"ips,omitempty"`
	Stopped   bool            `json:"stopped,omitempty"`
	Released  bool            `json:"released,omitempty"` // stopped, and network and namespaces given back
	PausePID  int             `json:"pausePID,omitempty"` // 0: no pause process
	Config    json.RawMessage `json:"config"`             // PodSandboxConfig, as protobuf's JSON
}

const sandboxFile = "sandbox.json"

func (s *sandbox) namespaceOptions() *runtimeapi.NamespaceOption {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

func (s *sandbox) hostNetwork() bool {
	return s.namespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
}

func (s *sandbox) hostIPC() bool {
	return s.namespaceOptions().GetIpc() == runtimeapi.NamespaceMode_NODE
}

// namespaces are those that the sandbox has of its own. The hostname goes with the
// network: a pod on the host's network has the host's name.
func (s *sandbox) namespaces() pinnedNamespaces {
	return pinnedNamespaces{
		Dir: filepath.Join(s.dir, "ns"),
		Net: !s.hostNetwork(), UTS: !s.hostNetwork(), IPC: !s.hostIPC(),
	}
}

func (s *sandbox) netNS() string { return s.namespaces().path("net") }

// maxHostname is Kubernetes' limit (a DNS label), one below the kernel's.
const maxHostname = 63

// hostname is the one that was asked for, else the beginning of the pod's name.
func (s *sandbox) hostname() string {
	if s.hostNetwork() {
		if h, err := os.Hostname(); err == nil {
			return h
		}
	}
	if h := s.config.GetHostname(); h != "" {
		return h
	}
	name := s.config.GetMetadata().GetName()
	return strings.TrimRight(name[:min(len(name), maxHostname)], "-.")
}

// cgroupParent is the pod's cgroup: the one that the caller named, or our own.
func (r *Runtime) cgroupParent(s *sandbox) string {
	if p := s.config.GetLinux().GetCgroupParent(); p != "" {
		return path.Clean("/" + p)
	}
	return path.Join(r.cfg.CgroupRoot, "pod-"+s.rec.ID)
}

// network is what the pod's attachment is made from.
func (s *sandbox) network() network.Pod {
	meta := s.config.GetMetadata()
	dns := s.config.GetDnsConfig()
	pod := network.Pod{
		ID: s.rec.ID, Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUid(), Annotations: s.config.GetAnnotations(),
		DNS: network.DNS{Servers: dns.GetServers(), Searches: dns.GetSearches(), Options: dns.GetOptions()},
	}
	if s.namespaces().alive() {
		pod.NetNS = s.netNS()
	}
	for _, p := range s.config.GetPortMappings() {
		if p.GetHostPort() == 0 {
			continue
		}
		proto := map[runtimeapi.Protocol]string{runtimeapi.Protocol_UDP: "udp", runtimeapi.Protocol_SCTP: "sctp"}[p.GetProtocol()]
		if proto == "" {
			proto = "tcp"
		}
		pod.Ports = append(pod.Ports, network.PortMapping{
			HostPort: p.GetHostPort(), ContainerPort: p.GetContainerPort(), Protocol: proto, HostIP: p.GetHostIp(),
		})
	}
	return pod
}

// RunPodSandbox makes a sandbox. When it returns the pod has its addresses (CRI).
func (r *Runtime) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	s, err := r.newSandbox(req)
	if err != nil {
		return nil, err
	}
	if err := r.setUp(ctx, s); err != nil {
		err = errors.Join(err, r.undo(context.WithoutCancel(ctx), s))
		return nil, fmt.Errorf("sandbox %s/%s: %w", s.config.GetMetadata().GetNamespace(), s.config.GetMetadata().GetName(), err)
	}
	r.mu.Lock()
	r.sandboxes[s.rec.ID] = s
	r.mu.Unlock()
	r.publish(s.rec.ID, s.rec.ID, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	r.publish(s.rec.ID, s.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: s.rec.ID}, nil
}

// undo removes what a failed setUp made. If that fails as well (a full disk, a plugin that
// refuses) the sandbox stays as a stopped one: whoever removes it tries again.
func (r *Runtime) undo(ctx context.Context, s *sandbox) error {
	err := errors.Join(r.tearDown(ctx, s), r.removePodCgroups(s))
	if err == nil {
		return s.removeDir()
	}
	r.log.Warn("a sandbox that could not be set up is not removed yet", "sandbox", s.rec.ID, "err", err)
	s.rec.Stopped = true
	r.mu.Lock()
	r.sandboxes[s.rec.ID] = s
	r.mu.Unlock()
	if serr := s.save(); serr != nil {
		r.log.Warn("sandbox not recorded: the next start takes it for debris", "sandbox", s.rec.ID, "err", serr)
	}
	return err
}

// newSandbox checks the request and makes the directory.
func (r *Runtime) newSandbox(req *runtimeapi.RunPodSandboxRequest) (*sandbox, error) {
	config := req.GetConfig()
	if config.GetMetadata().GetName() == "" {
		return nil, fmt.Errorf("%w: sandbox without metadata", ErrInvalid)
	}
	if req.GetRuntimeHandler() != "" && req.GetRuntimeHandler() != "runc" {
		return nil, fmt.Errorf("%w: runtime handler %q", ErrInvalid, req.GetRuntimeHandler())
	}
	if m := config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions(); m != nil && m.GetMode() == runtimeapi.NamespaceMode_POD {
		return nil, fmt.Errorf("%w: user namespaces", ErrUnsupported)
	}
	raw, err := protojson.Marshal(config)
	if err != nil {
		return nil, err
	}
	id := newID()
	s := &sandbox{
		dir:    filepath.Join(r.cfg.sandboxes(), id),
		rec:    sandboxRecord{ID: id, Handler: req.GetRuntimeHandler(), CreatedAt: time.Now(), Config: raw},
		config: config,
	}
	if err := s.checkSysctls(); err != nil {
		return nil, err
	}
	return s, os.Mkdir(s.dir, 0o711)
}

// setUp makes the namespaces, then the network (slow: it runs programs) beside the rest.
func (r *Runtime) setUp(ctx context.Context, s *sandbox) error {
	if err := s.namespaces().create(s.hostname(), s.sysctls()); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	if !s.hostNetwork() {
		g.Go(func() (err error) {
			s.rec.IPs, err = r.network.Attach(gctx, s.network())
			return err
		})
	}
	g.Go(func() error { return r.setUpFiles(s) })
	if err := g.Wait(); err != nil {
		return err
	}
	return s.save()
}

// setUpFiles makes /dev/shm, the files in /etc and the pod's cgroup.
func (r *Runtime) setUpFiles(s *sandbox) error {
	if err := s.mountShm(); err != nil {
		return err
	}
	if err := s.writeEtc(); err != nil {
		return err
	}
	if s.config.GetLogDirectory() != "" {
		if err := os.MkdirAll(s.config.GetLogDirectory(), 0o755); err != nil {
			return err
		}
	}
	if s.config.GetLinux().GetCgroupParent() != "" {
		return nil // the caller's own
	}
	return r.makePodCgroup(s)
}

func (s *sandbox) save() error { return shim.WriteFile(filepath.Join(s.dir, sandboxFile), &s.rec) }

// tearDown frees everything that setUp may have made, except the directory. It may be
// called again after an error.
func (r *Runtime) tearDown(ctx context.Context, s *sandbox) error {
	var errs []error
	if !s.hostNetwork() {
		if err := r.network.Detach(ctx, s.network()); err != nil && !errors.Is(err, network.ErrNotReady) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(append(errs, r.stopPause(s))...); err != nil {
		return err // the pins stay: CNI DEL and the pause process need them
	}
	return errors.Join(s.namespaces().remove(), unmountRemove(filepath.Join(s.dir, "shm")))
}
