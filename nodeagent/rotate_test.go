package nodeagent

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/logs"
	"kontiki/nodeagent/podspec"
)

// logRuntime is a runtime with three containers, of which it says where they log; it notes who is asked about and reopened.
type logRuntime struct {
	grpc.ClientConnInterface
	paths           map[string]string
	asked, reopened []string
}

func (r *logRuntime) Invoke(_ context.Context, _ string, in, out any, _ ...grpc.CallOption) error {
	switch request := in.(type) {
	case *runtimeapi.ListContainersRequest:
		for id := range r.paths {
			out.(*runtimeapi.ListContainersResponse).Containers = append(out.(*runtimeapi.ListContainersResponse).Containers, &runtimeapi.Container{
				Id: id, Metadata: &runtimeapi.ContainerMetadata{Attempt: 2}, Labels: map[string]string{
					podspec.LabelPodNamespace: "ns", podspec.LabelPodName: "p", podspec.LabelPodUID: "u", podspec.LabelContainerName: id,
				},
			})
		}
	case *runtimeapi.ContainerStatusRequest:
		r.asked = append(r.asked, request.ContainerId)
		out.(*runtimeapi.ContainerStatusResponse).Status = &runtimeapi.ContainerStatus{LogPath: r.paths[request.ContainerId]}
	case *runtimeapi.ReopenContainerLogRequest:
		r.reopened = append(r.reopened, request.ContainerId)
	}
	return nil
}

// TestRotateLogs: a large log is rotated wherever it is; the runtime is not asked about one that is small.
func TestRotateLogs(t *testing.T) {
	r := &logRuntime{paths: map[string]string{}}
	a := &Agent{cfg: Config{NodeName: "n1", DataDir: t.TempDir(), LogMaxBytes: 10, LogMaxFiles: 3}, cri: newCRIClient(r, "n1")}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	for id, size := range map[string]int{"small": 10, "large": 11} {
		r.paths[id] = filepath.Join(a.logDir(pod), podspec.LogPath(id, 2))
		require.NoError(t, os.MkdirAll(filepath.Dir(r.paths[id]), 0o700))
		require.NoError(t, os.WriteFile(r.paths[id], make([]byte, size), 0o600))
	}
	r.paths["elsewhere"] = filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, os.WriteFile(r.paths["elsewhere"], make([]byte, 11), 0o600))
	a.rotateLogs(t.Context())
	require.ElementsMatch(t, []string{"large", "elsewhere"}, r.reopened)
	require.ElementsMatch(t, []string{"large", "elsewhere"}, r.asked)
	for id, path := range r.paths {
		rotated, err := logs.Rotated(path)
		require.NoError(t, err)
		require.Equal(t, id != "small", len(rotated) == 1, id)
	}
}
