package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/runtime/shim"
)

// resources translates CRI limits to OCI. Zero means "not said" in CRI, so it is left out.
// runc converts to cgroup v2 (shares to weight and so on).
func (r *Runtime) resources(in *runtimeapi.LinuxContainerResources) *specs.LinuxResources {
	out := &specs.LinuxResources{CPU: &specs.LinuxCPU{}, Memory: &specs.LinuxMemory{}}
	if in == nil {
		return out
	}
	if in.GetCpuPeriod() > 0 {
		period := uint64(in.GetCpuPeriod())
		out.CPU.Period = &period
	}
	if in.GetCpuQuota() != 0 {
		quota := in.GetCpuQuota()
		out.CPU.Quota = &quota
	}
	if in.GetCpuShares() > 0 {
		shares := uint64(in.GetCpuShares())
		out.CPU.Shares = &shares
	}
	out.CPU.Cpus, out.CPU.Mems = in.GetCpusetCpus(), in.GetCpusetMems()
	if in.GetMemoryLimitInBytes() > 0 {
		limit := in.GetMemoryLimitInBytes()
		out.Memory.Limit = &limit
	}
	if in.GetMemorySwapLimitInBytes() > 0 && (r.host.cgroupV2 || r.host.swapLimit) {
		swap := in.GetMemorySwapLimitInBytes()
		out.Memory.Swap = &swap
	}
	for _, h := range in.GetHugepageLimits() {
		out.HugepageLimits = append(out.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: h.GetPageSize(), Limit: h.GetLimit()})
	}
	if r.host.cgroupV2 {
		out.Unified = in.GetUnified()
	}
	return out
}

// UpdateContainerResources changes the limits of a container, running or not yet.
func (r *Runtime) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	c.op.Lock()
	defer c.op.Unlock()
	r.mu.RLock()
	state, config := c.state, proto.CloneOf(c.config)
	r.mu.RUnlock()
	if config.Linux == nil {
		config.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	config.Linux.Resources = mergeResources(config.Linux.GetResources(), req.GetLinux())
	switch state {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		err = r.updateSpec(c, config)
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		err = r.runcUpdate(ctx, c, r.resources(req.GetLinux()))
	default:
		err = fmt.Errorf("%w: container has exited", ErrState)
	}
	if err == nil {
		err = c.save(config)
	}
	if err != nil {
		return nil, fmt.Errorf("update container %s: %w", c.rec.ID, err)
	}
	r.mu.Lock()
	c.config = config
	r.mu.Unlock()
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// mergeResources overwrites what change says and keeps the rest.
func mergeResources(old, change *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{}
	if old != nil {
		out = proto.CloneOf(old)
	}
	if change != nil {
		change = proto.CloneOf(change)
		if len(change.HugepageLimits) > 0 {
			out.HugepageLimits = nil // Merge appends lists
		}
		proto.Merge(out, change)
	}
	return out
}

// updateSpec rewrites the bundle of a container that has not started.
func (r *Runtime) updateSpec(c *container, config *runtimeapi.ContainerConfig) error {
	path := filepath.Join(c.dir, "config.json")
	var spec specs.Spec
	if found, err := shim.ReadFile(path, &spec); err != nil || !found {
		return fmt.Errorf("config.json: found %v: %w", found, err)
	}
	devices := spec.Linux.Resources.Devices
	spec.Linux.Resources = r.resources(config.GetLinux().GetResources())
	spec.Linux.Resources.Devices = devices
	return shim.WriteFile(path, &spec)
}

func (r *Runtime) runcUpdate(ctx context.Context, c *container, res *specs.LinuxResources) error {
	b, err := json.Marshal(res)
	if err != nil {
		return err
	}
	argv := append(r.cfg.runc(), "update", "--resources", "-", c.rec.ID)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(b)
	return command(cmd)
}
