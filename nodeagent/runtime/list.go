package runtime

import (
	"context"
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// matches says whether an object passes a CRI filter: an id (or the beginning of one, for
// people) and labels.
func matches(id, wantID string, labels, want map[string]string) bool {
	if wantID != "" && id != wantID && (len(wantID) < minPrefix || !strings.HasPrefix(id, wantID)) {
		return false
	}
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// sandboxState: ready until it is stopped or its namespaces are gone. The caller holds mu.
func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.rec.Stopped {
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return runtimeapi.PodSandboxState_SANDBOX_READY
}

// ListPodSandbox lists sandboxes, oldest first.
func (r *Runtime) ListPodSandbox(_ context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	f := req.GetFilter()
	r.mu.RLock()
	defer r.mu.RUnlock()
	resp := &runtimeapi.ListPodSandboxResponse{}
	for id, s := range r.sandboxes {
		if !matches(id, f.GetId(), s.config.GetLabels(), f.GetLabelSelector()) || f.GetState() != nil && f.GetState().GetState() != s.state() {
			continue
		}
		resp.Items = append(resp.Items, &runtimeapi.PodSandbox{
			Id: id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.rec.CreatedAt.UnixNano(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.rec.Handler,
		})
	}
	sort.Slice(resp.Items, func(i, j int) bool { return resp.Items[i].CreatedAt < resp.Items[j].CreatedAt })
	return resp, nil
}

// PodSandboxStatus tells about one sandbox and its containers.
func (r *Runtime) PodSandboxStatus(_ context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s, err := lookup("sandbox", r.sandboxes, req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.PodSandboxStatusResponse{Status: s.status()}
	resp.ContainersStatuses = r.statusesOf(s.rec.ID)
	if req.GetVerbose() {
		resp.Info = verbose(map[string]any{"record": s.rec, "netns": s.netNS(), "cgroup": r.cgroupParent(s)})
	}
	return resp, nil
}

// status is the CRI view of a sandbox. The caller holds mu.
func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	net := &runtimeapi.PodSandboxNetworkStatus{}
	for i, ip := range s.rec.IPs {
		if i == 0 {
			net.Ip = ip.String()
			continue
		}
		net.AdditionalIps = append(net.AdditionalIps, &runtimeapi.PodIP{Ip: ip.String()})
	}
	return &runtimeapi.PodSandboxStatus{
		Id: s.rec.ID, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.rec.CreatedAt.UnixNano(),
		Network:        net,
		Linux:          &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: s.namespaceOptions()}},
		Labels:         s.config.GetLabels(),
		Annotations:    s.config.GetAnnotations(),
		RuntimeHandler: s.rec.Handler,
	}
}

// statusesOf are the containers of a sandbox, oldest first. The caller holds mu.
func (r *Runtime) statusesOf(sandboxID string) []*runtimeapi.ContainerStatus {
	var out []*runtimeapi.ContainerStatus
	for _, c := range r.containers {
		if c.rec.SandboxID == sandboxID {
			out = append(out, c.status())
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].CreatedAt < out[j].CreatedAt })
	return out
}

// ListContainers lists containers, oldest first.
func (r *Runtime) ListContainers(_ context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	f := req.GetFilter()
	r.mu.RLock()
	defer r.mu.RUnlock()
	resp := &runtimeapi.ListContainersResponse{}
	for id, c := range r.containers {
		if !matches(id, f.GetId(), c.config.GetLabels(), f.GetLabelSelector()) ||
			!matches(c.rec.SandboxID, f.GetPodSandboxId(), nil, nil) ||
			f.GetState() != nil && f.GetState().GetState() != c.state {
			continue
		}
		resp.Containers = append(resp.Containers, &runtimeapi.Container{
			Id: id, PodSandboxId: c.rec.SandboxID, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(),
			ImageRef: c.rec.ImageRef, ImageId: c.rec.ImageID, State: c.state, CreatedAt: c.rec.CreatedAt.UnixNano(),
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	sort.Slice(resp.Containers, func(i, j int) bool { return resp.Containers[i].CreatedAt < resp.Containers[j].CreatedAt })
	return resp, nil
}

// ContainerStatus tells about one container.
func (r *Runtime) ContainerStatus(_ context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, err := lookup("container", r.containers, req.GetContainerId())
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.ContainerStatusResponse{Status: c.status()}
	if req.GetVerbose() {
		resp.Info = verbose(map[string]any{"record": c.rec, "pid": c.started.PID, "bundle": c.dir})
	}
	return resp, nil
}

// status is the CRI view of a container. The caller holds mu.
func (c *container) status() *runtimeapi.ContainerStatus {
	st := &runtimeapi.ContainerStatus{
		Id: c.rec.ID, Metadata: c.config.GetMetadata(), State: c.state, CreatedAt: c.rec.CreatedAt.UnixNano(),
		Image: c.config.GetImage(), ImageRef: c.rec.ImageRef, ImageId: c.rec.ImageID,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		Mounts: c.config.GetMounts(), LogPath: c.rec.LogPath,
		Resources:  &runtimeapi.ContainerResources{Linux: c.config.GetLinux().GetResources()},
		StopSignal: runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+c.rec.StopSignal]),
		User: &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{
			Uid: int64(c.rec.User.UID), Gid: int64(c.rec.User.GID), SupplementalGroups: signed(c.rec.User.AdditionalGids),
		}},
	}
	if !c.started.StartedAt.IsZero() {
		st.StartedAt = c.started.StartedAt.UnixNano()
	}
	if c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
		st.FinishedAt, st.ExitCode = c.exit.FinishedAt.UnixNano(), int32(c.exit.Code)
		st.Reason, st.Message = c.exitReason(), c.exit.Message
	}
	return st
}

// exitReason is the word that `kubectl get pods` shows.
func (c *container) exitReason() string {
	switch {
	case c.exit.Reason != "":
		return c.exit.Reason
	case c.exit.OOMKilled:
		return "OOMKilled"
	case c.exit.Code == 0:
		return "Completed"
	}
	return "Error"
}

func signed(ids []uint32) []int64 {
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}

// verbose renders extra facts as CRI wants them: strings of JSON.
func verbose(facts map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range facts {
		if b, err := json.Marshal(v); err == nil {
			out[k] = string(b)
		} else {
			out[k] = strconv.Quote(err.Error())
		}
	}
	return out
}
