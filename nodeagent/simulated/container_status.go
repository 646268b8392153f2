package simulated

import (
	"context"
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus returns one container.
func (r *Runtime) ContainerStatus(_ context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[req.ContainerId]
	if !ok {
		return nil, ErrNotFound
	}
	return &runtimeapi.ContainerStatusResponse{Status: r.status(c)}, nil
}

func (r *Runtime) status(c *container) *runtimeapi.ContainerStatus {
	s := &runtimeapi.ContainerStatus{
		Id: c.ID, Metadata: c.Config.Metadata, State: c.State,
		CreatedAt: c.Created, StartedAt: c.Started, FinishedAt: c.Finished,
		ExitCode: c.ExitCode, Reason: c.Reason,
		Image: c.Config.Image, ImageRef: c.Config.Image.Image, ImageId: c.Config.Image.Image,
		Labels: c.Config.Labels, Annotations: c.Config.Annotations, Mounts: c.Config.Mounts,
	}
	if sb := r.sandboxes[c.SandboxID]; sb != nil && sb.Config.LogDirectory != "" && c.Config.LogPath != "" {
		s.LogPath = filepath.Join(sb.Config.LogDirectory, c.Config.LogPath)
	}
	return s
}

// ListContainers lists the containers that match the filter.
func (r *Runtime) ListContainers(_ context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, f := &runtimeapi.ListContainersResponse{}, req.GetFilter()
	for _, c := range r.containers {
		if f.GetId() != "" && f.Id != c.ID || f.GetPodSandboxId() != "" && f.PodSandboxId != c.SandboxID ||
			f.GetState() != nil && f.State.State != c.State || !matches(c.Config.Labels, f.GetLabelSelector()) {
			continue
		}
		out.Containers = append(out.Containers, &runtimeapi.Container{
			Id: c.ID, PodSandboxId: c.SandboxID, Metadata: c.Config.Metadata, Image: c.Config.Image,
			ImageRef: c.Config.Image.Image, State: c.State, CreatedAt: c.Created,
			Labels: c.Config.Labels, Annotations: c.Config.Annotations,
		})
	}
	return out, nil
}

// UpdateContainerResources accepts anything: nothing is measured here.
func (r *Runtime) UpdateContainerResources(context.Context, *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// ListContainerStats is empty: containers that are only status use nothing.
func (r *Runtime) ListContainerStats(context.Context, *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	return &runtimeapi.ListContainerStatsResponse{}, nil
}

// ListPodSandboxStats is empty, as ListContainerStats is.
func (r *Runtime) ListPodSandboxStats(context.Context, *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	return &runtimeapi.ListPodSandboxStatsResponse{}, nil
}
