package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A subscriber hears of every step, with the state of the pod.
func TestEvents(t *testing.T) {
	h := newHost(t)
	stream, err := h.client.GetContainerEvents(t.Context(), &runtimeapi.GetEventsRequest{})
	require.NoError(t, err)
	_, err = stream.Header()
	require.NoError(t, err)
	type event struct {
		id   string
		kind runtimeapi.ContainerEventType
	}
	next := func() (event, *runtimeapi.ContainerEventResponse) {
		ev, err := stream.Recv()
		require.NoError(t, err)
		return event{ev.ContainerId, ev.ContainerEventType}, ev
	}
	p := h.runPod(h.sandboxConfig("events"))
	id := p.start(containerConfig("main", "exit", "3"))
	h.waitExit(id)
	_, err = h.client.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	const (
		created = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT
		started = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
		stopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
		deleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
	)
	for _, want := range []event{
		{p.id, created}, {p.id, started}, {id, created}, {id, started}, {id, stopped},
		{p.id, stopped}, {id, deleted}, {p.id, deleted},
	} {
		got, ev := next()
		require.Equal(t, want, got)
		if want == (event{id, stopped}) {
			require.EqualValues(t, 3, ev.ContainersStatuses[0].ExitCode)
			require.Equal(t, "events", ev.PodSandboxStatus.Metadata.Name)
		}
	}
}
