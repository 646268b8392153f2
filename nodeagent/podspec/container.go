package podspec

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerInput is what a container config needs beside the pod and the container.
type ContainerInput struct {
	Attempt        uint32 // restart count of this instance
	BackOffSeconds int64  // see AnnotationBackOff
	Node           string
	ImageRef       string // what the runtime calls the image
	ImageUser      ImageUser
	Facts          Facts
	MemoryCapacity int64 // bytes of the node
	ServiceLinks   map[string]string
	Sources        Sources
	// Mounts makes the mounts of volumes, hosts file and so on; expand evaluates $(VAR) of a
	// subPathExpr. TerminationFile is the host side of the termination message, mounted here.
	Mounts          func(expand func(string) string) ([]*runtimeapi.Mount, error)
	TerminationFile string
}

// ContainerConfig describes one container to the runtime. Its errors are the user's to fix; the
// container waits with reason CreateContainerConfigError and the error's text.
func ContainerConfig(ctx context.Context, pod *corev1.Pod, c *corev1.Container, in ContainerInput) (*runtimeapi.ContainerConfig, error) {
	env, err := newEnvironment(ctx, pod, c, in.Facts, in.ServiceLinks, in.Sources)
	if err != nil {
		return nil, err
	}
	security, err := securityContext(pod, c, in.ImageUser)
	if err != nil {
		return nil, err
	}
	expand := func(s string) string { return Expand(s, env.lookup) }
	expandAll := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = expand(s)
		}
		return out
	}
	mounts, err := in.Mounts(expand)
	if err != nil {
		return nil, err
	}
	if in.TerminationFile != "" {
		mounts = append(mounts, &runtimeapi.Mount{ContainerPath: terminationPath(c), HostPath: in.TerminationFile})
	}
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       &runtimeapi.ImageSpec{Image: in.ImageRef, UserSpecifiedImage: c.Image},
		Command:     expandAll(c.Command),
		Args:        expandAll(c.Args),
		WorkingDir:  c.WorkingDir,
		Envs:        env.list(),
		Mounts:      mounts,
		Labels:      containerLabels(pod, c, in.Node),
		Annotations: containerAnnotations(pod, c, in),
		LogPath:     LogPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       ContainerResources(pod, c, in.MemoryCapacity),
			SecurityContext: security,
		},
		StopSignal: stopSignal(c),
	}, nil
}

func terminationPath(c *corev1.Container) string {
	if c.TerminationMessagePath == "" {
		return corev1.TerminationMessagePathDefault
	}
	return c.TerminationMessagePath
}

// LogPath is where a container's log is, below its pod's directory for logs.
func LogPath(container string, attempt uint32) string {
	return filepath.Join(container, fmt.Sprintf("%d.log", attempt))
}

func containerLabels(pod *corev1.Pod, c *corev1.Container, node string) map[string]string {
	return map[string]string{
		LabelPodName: pod.Name, LabelPodNamespace: pod.Namespace, LabelPodUID: string(pod.UID),
		LabelContainerName: c.Name, LabelNode: node,
	}
}

func containerAnnotations(pod *corev1.Pod, c *corev1.Container, in ContainerInput) map[string]string {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	return map[string]string{
		AnnotationHash:                     Hash(c),
		AnnotationRestartCount:             strconv.FormatUint(uint64(in.Attempt), 10),
		AnnotationBackOff:                  strconv.FormatInt(in.BackOffSeconds, 10),
		AnnotationTerminationMessagePath:   terminationPath(c),
		AnnotationTerminationMessagePolicy: string(c.TerminationMessagePolicy),
		AnnotationTerminationMessageFile:   in.TerminationFile,
		AnnotationGracePeriod:              strconv.FormatInt(grace, 10),
	}
}

func stopSignal(c *corev1.Container) runtimeapi.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+string(*c.Lifecycle.StopSignal)])
}
