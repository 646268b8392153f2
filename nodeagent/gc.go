package nodeagent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/logs"
	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/podstate"
)

// How often logs are looked at for rotation, and what is left over is looked for.
const (
	rotatePeriod = 10 * time.Second
	tidyPeriod   = 30 * time.Second
)

// keepInstances is how many instances of a container are kept: the newest, and the one before it for
// `kubectl logs --previous`.
const keepInstances = 2

// collectGarbage rotates logs and removes what no pod needs any more, until ctx ends.
//
// Not yet: removal of unused images when the disk fills up.
func (a *Agent) collectGarbage(ctx context.Context) {
	rotate, tidy := time.NewTicker(rotatePeriod), time.NewTicker(tidyPeriod)
	defer rotate.Stop()
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rotate.C:
			a.rotateLogs(ctx)
		case <-tidy.C:
			for uid := range a.pods.known() {
				a.removeOldInstances(ctx, uid)
			}
			a.adoptDirectories()
			a.removeLogDirs()
		}
	}
}

func (a *Agent) rotateLogs(ctx context.Context) {
	running := &runtimeapi.ContainerFilter{
		State:         &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{podspec.LabelNode: a.cfg.NodeName},
	}
	list, err := a.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: running})
	if err != nil {
		return // watchRuntime reports that the runtime does not answer
	}
	for _, c := range list.Containers {
		if a.hasSmallLog(c) {
			continue
		}
		status, err := a.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id})
		if err != nil || status.Status.LogPath == "" {
			continue
		}
		err = logs.Rotate(status.Status.LogPath, a.cfg.LogMaxBytes, a.cfg.LogMaxFiles, time.Now(), func() error {
			_, err := a.cri.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: c.Id})
			return err
		})
		if err != nil {
			a.log.Warn("container log could not be rotated", "log", status.Status.LogPath, "err", err)
		}
	}
}

// hasSmallLog says whether a container's log, where this agent has it written, need not be rotated: nearly all need not, and
// to ask the runtime about each costs a hundred times what a look at the file does.
func (a *Agent) hasSmallLog(c *runtimeapi.Container) bool {
	dir := a.logDirOf(c.Labels[podspec.LabelPodNamespace], c.Labels[podspec.LabelPodName], c.Labels[podspec.LabelPodUID])
	info, err := os.Stat(filepath.Join(dir, podspec.LogPath(c.Labels[podspec.LabelContainerName], c.GetMetadata().GetAttempt())))
	return err == nil && info.Size() <= a.cfg.LogMaxBytes
}

// removeOldInstances removes a pod's dead containers but for the newest few, with their logs, and sandboxes that no
// kept container is in.
func (a *Agent) removeOldInstances(ctx context.Context, uid types.UID) {
	state, err := a.cri.podState(ctx, uid)
	if err != nil {
		return
	}
	needed := map[string]bool{}
	for _, list := range state.Containers {
		for i, in := range list {
			if i < keepInstances || in.Running() {
				needed[in.SandboxID] = true
				continue
			}
			a.removeInstance(ctx, in)
		}
	}
	for i, s := range state.Sandboxes {
		if i == 0 || needed[s.Id] || s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			continue
		}
		if _, err := a.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			a.log.Warn("old sandbox could not be removed", "sandbox", s.Id, "err", err)
		}
	}
}

func (a *Agent) removeInstance(ctx context.Context, in *podstate.Instance) {
	if _, err := a.cri.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: in.Id}); err != nil {
		a.log.Warn("dead container could not be removed", "container", in.Id, "err", err)
		return
	}
	if in.LogPath == "" {
		return
	}
	files, _ := logs.Rotated(in.LogPath)
	for _, f := range append(files, in.LogPath) {
		_ = os.Remove(f) // the pod's end removes the whole directory
	}
}

// adoptDirectories finds pods of which only a directory is left.
func (a *Agent) adoptDirectories() {
	dirs, err := a.volumes.Pods()
	if err != nil {
		a.log.Warn("pod directories could not be listed", "err", err)
		return
	}
	known := a.pods.known()
	var strangers []types.UID
	for _, uid := range dirs {
		if _, ok := known[uid]; !ok {
			strangers = append(strangers, uid)
		}
	}
	a.pods.adopt(strangers)
}

// removeLogDirs removes the log directories (NAMESPACE_NAME_UID) of pods that are no more.
func (a *Agent) removeLogDirs() {
	if !a.pods.complete() {
		return
	}
	entries, err := os.ReadDir(filepath.Join(a.cfg.DataDir, "logs"))
	if err != nil {
		return // there is none before the first pod
	}
	known := a.pods.known()
	for _, e := range entries {
		uid := types.UID(e.Name()[strings.LastIndexByte(e.Name(), '_')+1:])
		if _, ok := known[uid]; ok {
			continue
		}
		if err := os.RemoveAll(filepath.Join(a.cfg.DataDir, "logs", e.Name())); err != nil {
			a.log.Warn("log directory could not be removed", "dir", e.Name(), "err", err)
		}
	}
}
