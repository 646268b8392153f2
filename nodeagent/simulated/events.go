package simulated

import (
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// eventBuffer bounds what one reader of events may lag behind. Beyond it events are dropped for that
// reader, as CRI allows: the agent also lists periodically.
const eventBuffer = 256

// GetContainerEvents streams the life of all containers until the caller or the runtime ends.
func (r *Runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, out grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	ch := make(chan *runtimeapi.ContainerEventResponse, eventBuffer)
	r.mu.Lock()
	r.watchers[ch] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.watchers, ch)
		r.mu.Unlock()
	}()
	for {
		select {
		case ev := <-ch:
			if err := out.Send(ev); err != nil {
				return err
			}
		case <-out.Context().Done():
			return nil
		case <-r.closed:
			return nil
		}
	}
}

// emit tells every reader about c. The caller holds r.mu.
func (r *Runtime) emit(c *container, kind runtimeapi.ContainerEventType) {
	ev := &runtimeapi.ContainerEventResponse{
		ContainerId: c.ID, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(),
		ContainersStatuses: []*runtimeapi.ContainerStatus{r.status(c)},
	}
	if s := r.sandboxes[c.SandboxID]; s != nil {
		ev.PodSandboxStatus = s.status()
	}
	for ch := range r.watchers {
		select {
		case ch <- ev:
		default:
		}
	}
}
