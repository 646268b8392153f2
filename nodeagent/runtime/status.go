package runtime

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The runtime's name and version, as `kubectl get nodes -o wide` shows them.
const (
	runtimeName    = "kontiki"
	runtimeVersion = "0.1.0"
	apiVersion     = "v1"
)

// Version names the runtime and its CRI version.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version:     "0.1.0", // of the kubelet's runtime API, which never changed
		RuntimeName: runtimeName, RuntimeVersion: runtimeVersion, RuntimeApiVersion: apiVersion,
	}, nil
}

// Status tells whether pods can run.
func (r *Runtime) Status(ctx context.Context, req *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	net := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: true}
	if err := r.network.Ready(ctx); err != nil {
		net.Status, net.Reason, net.Message = false, "NetworkPluginNotReady", err.Error()
	}
	resp := &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true}, net,
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{
			{Name: "", Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}},
			{Name: "runc", Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}},
		},
		Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}
	if req.GetVerbose() {
		resp.Info = verbose(map[string]any{"config": map[string]any{
			"stateDir": r.cfg.StateDir, "runc": r.cfg.RuncPath, "cgroupRoot": r.cfg.CgroupRoot,
			"overlay": r.images.Overlay(), "cgroupV2": r.host.cgroupV2,
		}})
	}
	return resp, nil
}

// RuntimeConfig tells that cgroups are plain directories, not systemd's.
func (r *Runtime) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig brings the node's pod CIDR. The first time, addresses that a crash
// left behind are freed too: before, there was no network to ask.
func (r *Runtime) UpdateRuntimeConfig(ctx context.Context, req *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	cidr := req.GetRuntimeConfig().GetNetworkConfig().GetPodCidr()
	if cidr == "" {
		return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
	}
	wasReady := r.network.Ready(ctx) == nil
	if err := r.network.SetPodCIDR(ctx, cidr); err != nil {
		return nil, err
	}
	if !wasReady {
		r.collectNetwork(ctx)
	}
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}

// ReopenContainerLog makes the container's log file anew, after a rotation.
func (r *Runtime) ReopenContainerLog(ctx context.Context, req *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	c, err := r.runningContainer(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ReopenContainerLogResponse{}, c.shim().Reopen(ctx)
}
