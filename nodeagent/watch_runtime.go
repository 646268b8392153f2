package nodeagent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
)

// How often the runtime's containers are listed: rarely while it streams events, which may be lost; often when it
// does not.
const (
	relistWithEvents    = 10 * time.Second
	relistWithoutEvents = time.Second
)

// watchRuntime kicks the workers of pods whose containers changed, until ctx ends.
func (a *Agent) watchRuntime(ctx context.Context) {
	streams := make(chan bool, 1) // says whether events are being streamed
	go a.streamEvents(ctx, streams)
	period, last := relistWithoutEvents, map[types.UID]string{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case on := <-streams:
			period = relistWithoutEvents
			if on {
				period = relistWithEvents
			}
		case <-timer.C:
			last = a.relist(ctx, last)
		}
		timer.Reset(period)
	}
}

// relist looks at what the runtime has and steps the pods that changed since the last look, which it returns anew.
func (a *Agent) relist(ctx context.Context, last map[types.UID]string) map[types.UID]string {
	next, err := a.cri.summary(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("containers could not be listed", "err", err)
		}
		return last
	}
	a.kickChanged(last, next)
	return next
}

// kickChanged steps the pods whose summaries differ, and adopts those that have no worker.
func (a *Agent) kickChanged(last, next map[types.UID]string) {
	var unknown []types.UID
	known := a.pods.known()
	for uid, text := range next {
		if _, ok := known[uid]; !ok {
			unknown = append(unknown, uid)
		} else if last[uid] != text {
			a.pods.kick(uid)
		}
	}
	for uid := range last {
		if _, ok := next[uid]; !ok {
			a.pods.kick(uid)
		}
	}
	a.pods.adopt(unknown)
}

// streamEvents kicks by the runtime's event stream, and says on state whether there is one.
func (a *Agent) streamEvents(ctx context.Context, state chan<- bool) {
	for ctx.Err() == nil {
		stream, err := a.cri.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
		on := false
		for err == nil {
			var ev *runtimeapi.ContainerEventResponse
			if ev, err = stream.Recv(); err != nil {
				break
			}
			if !on {
				on = true
				tell(ctx, state, true)
			}
			a.pods.kick(eventPod(ev))
		}
		if grpcstatus.Code(err) == codes.Unimplemented {
			return
		}
		if on {
			tell(ctx, state, false)
		}
		sleep(ctx, time.Second)
	}
}

func tell(ctx context.Context, ch chan<- bool, v bool) {
	select {
	case ch <- v:
	case <-ctx.Done():
	}
}

// eventPod is the UID of the pod that an event is about; runtimes fill in the one or the other part.
func eventPod(ev *runtimeapi.ContainerEventResponse) types.UID {
	if uid := ev.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		return types.UID(uid)
	}
	for _, c := range ev.GetContainersStatuses() {
		if uid := c.Labels[podspec.LabelPodUID]; uid != "" {
			return types.UID(uid)
		}
	}
	return ""
}

// summary describes the state of every pod of this node in the runtime in a text that changes when it does.
func (c *criClient) summary(ctx context.Context) (map[types.UID]string, error) {
	ctx, cancel := context.WithTimeout(ctx, criTimeout)
	defer cancel()
	mine := map[string]string{podspec.LabelNode: c.node}
	sandboxes, err := c.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: mine}})
	if err != nil {
		return nil, err
	}
	containers, err := c.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: mine}})
	if err != nil {
		return nil, err
	}
	parts := map[types.UID][]string{}
	for _, s := range sandboxes.Items {
		uid := types.UID(s.GetMetadata().GetUid())
		parts[uid] = append(parts[uid], fmt.Sprint(s.Id, s.State))
	}
	for _, s := range containers.Containers {
		uid := types.UID(s.Labels[podspec.LabelPodUID])
		parts[uid] = append(parts[uid], fmt.Sprint(s.Id, s.State))
	}
	out := map[types.UID]string{}
	for uid, list := range parts {
		slices.Sort(list)
		out[uid] = strings.Join(list, " ")
	}
	return out, nil
}
