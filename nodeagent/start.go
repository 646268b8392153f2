package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/podstate"
)

// imageRef is an image that is present: how the runtime calls it, and the user it wants.
type imageRef struct {
	id   string
	user podspec.ImageUser
}

// start creates and starts one container. A refusal is an event, a waiting reason for the status, and an error that
// has the worker come back.
func (w *worker) start(
	ctx context.Context, pod *corev1.Pod, state *podstate.State, s podstate.Start, image *imageRef,
) (*podstate.Waiting, error) {
	c := s.Container
	config, err := w.containerConfig(ctx, pod, state, s, image)
	if err != nil {
		return w.refused(pod, c, "CreateContainerConfigError", err)
	}
	// A CRI runtime opens the log file but leaves its directory to its client, as the kubelet does.
	if err := os.MkdirAll(filepath.Join(w.a.logDir(pod), filepath.Dir(config.LogPath)), 0o755); err != nil {
		return w.refused(pod, c, "CreateContainerError", err)
	}
	callCtx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	sandbox := state.Sandbox()
	created, err := w.a.cri.CreateContainer(callCtx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.GetId(), Config: config,
		SandboxConfig: w.sandboxConfig(pod, sandbox.GetMetadata().GetAttempt()),
	})
	if err != nil {
		return w.refused(pod, c, "CreateContainerError", err)
	}
	w.a.event(pod, c, corev1.EventTypeNormal, "Created", "Created container: "+c.Name)
	w.usedImage(c.Name)
	if _, err := w.a.cri.StartContainer(callCtx, &runtimeapi.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		return w.refused(pod, c, "RunContainerError", err)
	}
	w.a.event(pod, c, corev1.EventTypeNormal, "Started", "Started container "+c.Name)
	w.a.metrics.started.Inc()
	w.postStart(ctx, pod, c, created.ContainerId)
	return nil, nil
}

func (w *worker) refused(pod *corev1.Pod, c *corev1.Container, reason string, err error) (*podstate.Waiting, error) {
	text := plainError(err)
	w.a.event(pod, c, corev1.EventTypeWarning, "Failed", "Error: "+text)
	return &podstate.Waiting{Reason: reason, Message: text}, fmt.Errorf("container %s: %s: %w", c.Name, reason, err)
}

func (w *worker) containerConfig(
	ctx context.Context, pod *corev1.Pod, state *podstate.State, s podstate.Start, image *imageRef,
) (*runtimeapi.ContainerConfig, error) {
	services, err := w.a.services(ctx)
	if err != nil {
		return nil, err
	}
	facts := w.facts(pod, state)
	termination, err := w.terminationFile(s)
	if err != nil {
		return nil, err
	}
	return podspec.ContainerConfig(ctx, pod, s.Container, podspec.ContainerInput{
		Attempt: s.Attempt, BackOffSeconds: int64(s.BackOff.Seconds()), Node: w.a.cfg.NodeName,
		ImageRef: image.id, ImageUser: image.user,
		Facts: facts, MemoryCapacity: w.a.machine.memoryBytes,
		ServiceLinks: podspec.ServiceLinks(pod, services), Sources: w.a.objects.maxAge(0),
		TerminationFile: termination,
		Mounts: func(expand func(string) string) ([]*runtimeapi.Mount, error) {
			return w.mounts(pod, s.Container, facts.PodIPs, expand)
		},
	})
}

// terminationFile makes an empty file that everyone may write: the container may run as any user.
func (w *worker) terminationFile(s podstate.Start) (string, error) {
	dir := filepath.Join(w.a.volumes.PodDir(w.uid), "containers", s.Container.Name)
	path := filepath.Join(dir, strconv.FormatUint(uint64(s.Attempt), 10))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o666)
}

// mounts are the container's volume mounts and its /etc/hosts.
func (w *worker) mounts(pod *corev1.Pod, c *corev1.Container, podIPs []string, expand func(string) string) ([]*runtimeapi.Mount, error) {
	var out []*runtimeapi.Mount
	for i := range c.VolumeMounts {
		m, err := w.mount(pod, c, i, expand)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return filepath.Clean(m.MountPath) == "/etc/hosts" }) {
		return out, nil
	}
	hostFile, err := os.ReadFile("/etc/hosts")
	if err != nil && pod.Spec.HostNetwork && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	path := filepath.Join(w.a.volumes.PodDir(w.uid), "etc-hosts")
	text := podspec.HostsFile(pod, podIPs, w.a.cfg.ClusterDomain, string(hostFile))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return append(out, &runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: path}), nil
}

func (w *worker) mount(pod *corev1.Pod, c *corev1.Container, index int, expand func(string) string) (*runtimeapi.Mount, error) {
	m := &c.VolumeMounts[index]
	path, ok := w.volumes[m.Name]
	if !ok {
		return nil, fmt.Errorf("volume %q of mount %q is not there", m.Name, m.MountPath)
	}
	at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
	volume := &pod.Spec.Volumes[at]
	sub := m.SubPath
	if m.SubPathExpr != "" {
		sub = expand(m.SubPathExpr)
	}
	if sub != "" {
		var err error
		if path, err = w.a.volumes.SubPath(w.uid, volume, path, sub, c.Name, index); err != nil {
			return nil, err
		}
	}
	out := &runtimeapi.Mount{ContainerPath: m.MountPath, HostPath: path, Readonly: m.ReadOnly}
	if !filepath.IsAbs(out.ContainerPath) {
		out.ContainerPath = "/" + out.ContainerPath
	}
	if volume.Secret != nil || volume.ConfigMap != nil || volume.DownwardAPI != nil || volume.Projected != nil {
		out.Readonly = true
	}
	if m.MountPropagation != nil {
		switch *m.MountPropagation {
		case corev1.MountPropagationHostToContainer:
			out.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case corev1.MountPropagationBidirectional:
			out.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		}
	}
	return out, nil
}
