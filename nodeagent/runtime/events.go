package runtime

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// events passes life-cycle events to the callers of GetContainerEvents.
type events struct {
	mu          sync.Mutex // guards the fields below; comes after Runtime.mu
	subscribers map[chan *runtimeapi.ContainerEventResponse]bool
	closed      bool
}

// eventQueue is how many events a subscriber may be behind. One that is further behind is
// cut off, and must list anew: events are hints to look, never the only source.
const eventQueue = 1000

func (e *events) subscribe() chan *runtimeapi.ContainerEventResponse {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := make(chan *runtimeapi.ContainerEventResponse, eventQueue)
	if e.closed {
		close(ch)
		return ch
	}
	if e.subscribers == nil {
		e.subscribers = map[chan *runtimeapi.ContainerEventResponse]bool{}
	}
	e.subscribers[ch] = true
	return ch
}

func (e *events) unsubscribe(ch chan *runtimeapi.ContainerEventResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.subscribers, ch)
}

func (e *events) wanted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.subscribers) > 0
}

func (e *events) send(ev *runtimeapi.ContainerEventResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ch := range e.subscribers {
		select {
		case ch <- ev:
		default:
			delete(e.subscribers, ch)
			close(ch)
		}
	}
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for ch := range e.subscribers {
		delete(e.subscribers, ch)
		close(ch)
	}
}

// publish sends an event about the object with the given id (a container, or the sandbox
// itself), with the state of its whole pod.
func (r *Runtime) publish(sandboxID, id string, kind runtimeapi.ContainerEventType) {
	if !r.events.wanted() {
		return
	}
	ev := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano()}
	r.mu.RLock()
	if s := r.sandboxes[sandboxID]; s != nil {
		ev.PodSandboxStatus = s.status()
	}
	ev.ContainersStatuses = r.statusesOf(sandboxID)
	r.mu.RUnlock()
	r.events.send(ev)
}

// GetContainerEvents streams events from now on until the caller leaves or falls behind. Its
// header says that the subscription stands: who lists after it misses nothing.
func (r *Runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	ch := r.events.subscribe()
	defer r.events.unsubscribe(ch)
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		select {
		case ev, ok := <-ch:
			if !ok {
				return ErrClosed
			}
			if err := stream.Send(ev); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
