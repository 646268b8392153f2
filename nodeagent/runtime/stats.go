package runtime

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// usage is what cgroups of either version tell, in one shape.
type usage struct {
	cpuNanos                      uint64 // since the cgroup was made
	memory, rss, inactive, limit  uint64 // bytes
	pageFaults, majorFaults, pids uint64
}

// cgroupUsage reads the counters of a cgroup.
func (r *Runtime) cgroupUsage(path string) (usage, error) {
	if r.host.cgroupV2 {
		return usageV2(path)
	}
	return usageV1(path)
}

func usageV1(path string) (usage, error) {
	cg, err := cgroup1.Load(cgroup1.StaticPath(path))
	if err != nil {
		return usage{}, fmt.Errorf("cgroup %s: %w", path, err)
	}
	m, err := cg.Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		return usage{}, fmt.Errorf("cgroup %s: %w", path, err)
	}
	mem := m.GetMemory()
	return usage{
		cpuNanos: m.GetCPU().GetUsage().GetTotal(),
		memory:   mem.GetUsage().GetUsage(), rss: mem.GetTotalRSS(), inactive: mem.GetTotalInactiveFile(), limit: mem.GetUsage().GetLimit(),
		pageFaults: mem.GetTotalPgFault(), majorFaults: mem.GetTotalPgMajFault(), pids: m.GetPids().GetCurrent(),
	}, nil
}

func usageV2(path string) (usage, error) {
	cg, err := cgroup2.Load(path)
	if err != nil {
		return usage{}, fmt.Errorf("cgroup %s: %w", path, err)
	}
	m, err := cg.Stat()
	if err != nil {
		return usage{}, fmt.Errorf("cgroup %s: %w", path, err)
	}
	mem := m.GetMemory()
	return usage{
		cpuNanos: m.GetCPU().GetUsageUsec() * 1000,
		memory:   mem.GetUsage(), rss: mem.GetAnon(), inactive: mem.GetInactiveFile(), limit: mem.GetUsageLimit(),
		pageFaults: mem.GetPgfault(), majorFaults: mem.GetPgmajfault(), pids: m.GetPids().GetCurrent(),
	}, nil
}

func (u usage) cpu(now int64) *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: number(u.cpuNanos)}
}

// memoryUsage: the working set is what cannot be reclaimed easily, usage without inactive
// file pages, as the kubelet defines it. Limits beyond 2^60 are "none".
func (u usage) memoryUsage(now int64) *runtimeapi.MemoryUsage {
	working := u.memory - min(u.inactive, u.memory)
	m := &runtimeapi.MemoryUsage{
		Timestamp: now, WorkingSetBytes: number(working), UsageBytes: number(u.memory), RssBytes: number(u.rss),
		PageFaults: number(u.pageFaults), MajorPageFaults: number(u.majorFaults),
	}
	if u.limit < 1<<60 {
		m.AvailableBytes = number(u.limit - min(working, u.limit))
	}
	return m
}

func number(n uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: n} }

// ContainerStats is the usage of one container.
func (r *Runtime) ContainerStats(_ context.Context, req *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatsResponse{Stats: r.containerStats(c)}, nil
}

// containerStats leaves out CPU and memory of a container that does not run.
func (r *Runtime) containerStats(c *container) *runtimeapi.ContainerStats {
	now := time.Now().UnixNano()
	r.mu.RLock()
	config := c.config
	r.mu.RUnlock()
	stats := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: c.rec.ID, Metadata: config.GetMetadata(), Labels: config.GetLabels(), Annotations: config.GetAnnotations(),
		},
		WritableLayer: c.writableLayer(now),
	}
	if u, err := r.cgroupUsage(c.rec.Cgroup); err == nil && r.running(c) {
		stats.Cpu, stats.Memory = u.cpu(now), u.memoryUsage(now)
	}
	return stats
}

// writableLayer counts what the container wrote. It walks the files; callers that ask
// often should not.
func (c *container) writableLayer(now int64) *runtimeapi.FilesystemUsage {
	var bytes, inodes uint64
	_ = filepath.WalkDir(filepath.Join(c.dir, "upper"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // files come and go, and copies have no upper directory
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += uint64(st.Blocks) * 512
				inodes++
			}
		}
		return nil
	})
	return &runtimeapi.FilesystemUsage{
		Timestamp: now, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: c.dir},
		UsedBytes: number(bytes), InodesUsed: number(inodes),
	}
}

// ListContainerStats is the usage of all running containers that the filter lets through.
func (r *Runtime) ListContainerStats(_ context.Context, req *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	f := req.GetFilter()
	r.mu.RLock()
	var chosen []*container
	for id, c := range r.containers {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING &&
			matches(id, f.GetId(), c.config.GetLabels(), f.GetLabelSelector()) && matches(c.rec.SandboxID, f.GetPodSandboxId(), nil, nil) {
			chosen = append(chosen, c)
		}
	}
	r.mu.RUnlock()
	resp := &runtimeapi.ListContainerStatsResponse{}
	for _, c := range chosen {
		resp.Stats = append(resp.Stats, r.containerStats(c))
	}
	return resp, nil
}

// PodSandboxStats is the usage of one pod.
func (r *Runtime) PodSandboxStats(_ context.Context, req *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatsResponse{Stats: r.sandboxStats(s)}, nil
}

// ListPodSandboxStats is the usage of all ready pods that the filter lets through.
func (r *Runtime) ListPodSandboxStats(_ context.Context, req *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	f := req.GetFilter()
	r.mu.RLock()
	var chosen []*sandbox
	for id, s := range r.sandboxes {
		if !s.rec.Stopped && matches(id, f.GetId(), s.config.GetLabels(), f.GetLabelSelector()) {
			chosen = append(chosen, s)
		}
	}
	r.mu.RUnlock()
	resp := &runtimeapi.ListPodSandboxStatsResponse{}
	for _, s := range chosen {
		resp.Stats = append(resp.Stats, r.sandboxStats(s))
	}
	return resp, nil
}

func (r *Runtime) sandboxStats(s *sandbox) *runtimeapi.PodSandboxStats {
	now := time.Now().UnixNano()
	linux := &runtimeapi.LinuxPodSandboxStats{}
	if u, err := r.cgroupUsage(r.cgroupParent(s)); err == nil {
		linux.Cpu, linux.Memory = u.cpu(now), u.memoryUsage(now)
		linux.Process = &runtimeapi.ProcessUsage{Timestamp: now, ProcessCount: number(u.pids)}
	}
	if net, err := s.networkUsage(now); err == nil {
		linux.Network = net
	}
	for _, c := range r.containersOf(s.rec.ID) {
		if r.running(c) {
			linux.Containers = append(linux.Containers, r.containerStats(c))
		}
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id: s.rec.ID, Metadata: s.config.GetMetadata(), Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		},
		Linux: linux,
	}
}
