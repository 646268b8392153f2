package nodeagent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/logs"
	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/podstate"
)

// criTimeout bounds calls that only look or that change one record; sandboxTimeout those that set a pod up or take it
// down, which call CNI plugins.
const (
	criTimeout     = 30 * time.Second
	sandboxTimeout = 2 * time.Minute
)

// Bounds of a termination message (API reference of terminationMessagePath and -Policy).
const (
	maxMessageBytes    = 4096
	maxLogMessageBytes = 2048
	maxLogMessageLines = 80
)

// criClient is the runtime, seen by one node.
type criClient struct {
	runtimeapi.RuntimeServiceClient
	images runtimeapi.ImageServiceClient
	node   string
	name   string // "containerd": the scheme of container ids
}

func newCRIClient(conn grpc.ClientConnInterface, node string) *criClient {
	return &criClient{RuntimeServiceClient: runtimeapi.NewRuntimeServiceClient(conn),
		images: runtimeapi.NewImageServiceClient(conn), node: node, name: "runtime"}
}

// podState reads everything that the runtime has of a pod.
func (c *criClient) podState(ctx context.Context, uid types.UID) (*podstate.State, error) {
	ctx, cancel := context.WithTimeout(ctx, criTimeout)
	defer cancel()
	mine := map[string]string{podspec.LabelPodUID: string(uid), podspec.LabelNode: c.node}
	state := &podstate.State{Containers: map[string][]*podstate.Instance{}}
	sandboxes, err := c.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: mine}})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	for _, s := range sandboxes.Items {
		got, err := c.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.Id})
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sandbox status: %w", err)
		}
		state.Sandboxes = append(state.Sandboxes, got.Status)
	}
	containers, err := c.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: mine}})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	for _, item := range containers.Containers {
		got, err := c.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: item.Id})
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("container status: %w", err)
		}
		in := &podstate.Instance{ContainerStatus: got.Status, SandboxID: item.PodSandboxId}
		in.TerminationMessage = terminationMessage(in)
		name := item.Labels[podspec.LabelContainerName]
		state.Containers[name] = append(state.Containers[name], in)
	}
	state.Sort()
	return state, nil
}

// terminationMessage is what an exited container left in its message file or, if it asked for that and failed, the
// end of its log.
func terminationMessage(in *podstate.Instance) string {
	if !in.Exited() {
		return ""
	}
	if path := in.Annotations[podspec.AnnotationTerminationMessageFile]; path != "" {
		if data, err := readHead(path, maxMessageBytes); err == nil && len(data) > 0 {
			return string(data)
		}
	}
	fallback := in.Annotations[podspec.AnnotationTerminationMessagePolicy] == string(corev1.TerminationMessageFallbackToLogsOnError)
	if !fallback || in.Code() == 0 || in.LogPath == "" {
		return ""
	}
	text, err := logs.Tail(in.LogPath, maxLogMessageLines, maxLogMessageBytes)
	if err != nil {
		return fmt.Sprintf("Error on reading termination message from logs: %v", err)
	}
	return text
}

func readHead(path string, limit int) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, limit)
	n, err := f.Read(buf)
	if n > 0 {
		err = nil
	}
	return buf[:n], err
}

// exec runs a command for probes and hooks.
func (c *criClient) exec(ctx context.Context, containerID string, command []string, timeout time.Duration) (string, int32, error) {
	seconds := max(int64((timeout+time.Second-1)/time.Second), 1)
	resp, err := c.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: containerID, Cmd: command, Timeout: seconds})
	if err != nil {
		if code := grpcstatus.Code(err); code == codes.DeadlineExceeded {
			return "", 0, fmt.Errorf("timed out after %s", timeout.Round(time.Millisecond))
		}
		return "", 0, err
	}
	return string(resp.Stdout) + string(resp.Stderr), resp.ExitCode, nil
}

func isGone(err error) bool { return grpcstatus.Code(err) == codes.NotFound }

// plainError is an error's text for users, without the frame that gRPC puts around what a runtime says.
func plainError(err error) string {
	if s, ok := grpcstatus.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
