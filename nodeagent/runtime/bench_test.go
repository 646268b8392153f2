package runtime_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestPodTimes prints how long the steps of a pod take. It asserts nothing about time; set
// KONTIKI_TIMES to the number of pods.
func TestPodTimes(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("KONTIKI_TIMES"))
	if err != nil {
		t.Skip("prints measurements: set KONTIKI_TIMES to a number of pods")
	}
	h := newHost(t)
	ctx := t.Context()
	times := map[string][]time.Duration{}
	measure := func(step string, f func() error) {
		begin := time.Now()
		require.NoError(t, f())
		times[step] = append(times[step], time.Since(begin))
	}
	for i := range n {
		config := h.sandboxConfig("p" + strconv.Itoa(i))
		var p pod
		var id string
		begin := time.Now()
		measure("1 RunPodSandbox", func() error { p = h.runPod(config); return nil })
		measure("2 CreateContainer", func() error { id = p.create(containerConfig("c", "serve")); return nil })
		measure("3 StartContainer", func() error {
			_, err := h.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
			return err
		})
		times["4 to running"] = append(times["4 to running"], time.Since(begin))
		measure("5 StopContainer", func() error {
			_, err := h.client.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 10})
			return err
		})
		measure("6 StopPodSandbox", func() error {
			_, err := h.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.id})
			return err
		})
		measure("7 RemovePodSandbox", func() error {
			_, err := h.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id})
			return err
		})
	}
	var steps []string
	for step := range times {
		steps = append(steps, step)
	}
	slices.Sort(steps)
	for _, step := range steps {
		slices.Sort(times[step])
		t.Logf("%-20s p50 %v  min %v  max %v", step, times[step][n/2], times[step][0], times[step][n-1])
	}
}
