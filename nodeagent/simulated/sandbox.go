package simulated

import (
	"context"
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is one pod sandbox. Its fields are exported for the state file alone.
type sandbox struct {
	ID      string
	Config  *runtimeapi.PodSandboxConfig
	Ready   bool
	IP      string // empty for pods on the host's network
	Created int64  // nanoseconds
}

func newID() string { return strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", "") }

// RunPodSandbox creates a ready sandbox with the lowest free address of the pod CIDR.
func (r *Runtime) RunPodSandbox(_ context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	if req.GetConfig().GetMetadata() == nil {
		return nil, status.Error(codes.InvalidArgument, "sandbox config without metadata")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sandbox{ID: newID(), Config: req.Config, Ready: true, Created: time.Now().UnixNano()}
	network := req.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork()
	if network != runtimeapi.NamespaceMode_NODE {
		addr, ok := r.freeAddress()
		if !ok {
			return nil, status.Errorf(codes.ResourceExhausted, "no free address in %s", r.cidr)
		}
		s.IP = addr.String()
	}
	r.sandboxes[s.ID] = s
	r.save()
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: s.ID}, nil
}

// freeAddress skips the network address and the first host, which a bridge would have.
func (r *Runtime) freeAddress() (netip.Addr, bool) {
	used := map[string]bool{}
	for _, s := range r.sandboxes {
		if s.Ready {
			used[s.IP] = true
		}
	}
	for a := r.cidr.Addr().Next().Next(); r.cidr.Contains(a); a = a.Next() {
		if !used[a.String()] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// StopPodSandbox kills what runs in the sandbox and frees its address. Unknown ids are no error (CRI).
func (r *Runtime) StopPodSandbox(_ context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sandboxes[req.PodSandboxId]; ok {
		r.stopSandbox(s)
		r.save()
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (r *Runtime) stopSandbox(s *sandbox) {
	for _, c := range r.containers {
		if c.SandboxID == s.ID && c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			r.exit(c, killedCode)
		}
	}
	s.Ready = false
}

// RemovePodSandbox removes the sandbox and its containers. Unknown ids are no error (CRI).
func (r *Runtime) RemovePodSandbox(_ context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sandboxes[req.PodSandboxId]; ok {
		r.stopSandbox(s)
		maps.DeleteFunc(r.containers, func(_ string, c *container) bool { return c.SandboxID == s.ID })
		delete(r.sandboxes, s.ID)
		r.save()
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus returns one sandbox.
func (r *Runtime) PodSandboxStatus(_ context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sandboxes[req.PodSandboxId]
	if !ok {
		return nil, ErrNotFound
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: s.status()}, nil
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.Ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	return &runtimeapi.PodSandboxStatus{
		Id: s.ID, Metadata: s.Config.Metadata, State: s.state(), CreatedAt: s.Created,
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: s.IP},
		Linux:   &runtimeapi.LinuxPodSandboxStatus{},
		Labels:  s.Config.Labels, Annotations: s.Config.Annotations,
	}
}

// ListPodSandbox lists the sandboxes that match the filter.
func (r *Runtime) ListPodSandbox(_ context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimeapi.ListPodSandboxResponse{}
	f := req.GetFilter()
	for _, s := range r.sandboxes {
		if f.GetId() != "" && f.Id != s.ID || f.GetState() != nil && f.State.State != s.state() ||
			!matches(s.Config.Labels, f.GetLabelSelector()) {
			continue
		}
		out.Items = append(out.Items, &runtimeapi.PodSandbox{
			Id: s.ID, Metadata: s.Config.Metadata, State: s.state(), CreatedAt: s.Created,
			Labels: s.Config.Labels, Annotations: s.Config.Annotations,
		})
	}
	return out, nil
}

func matches(labels, selector map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}
