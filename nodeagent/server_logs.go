package nodeagent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/logs"
	"kontiki/nodeagent/podstate"
)

// serveLogs streams a container's log; the query has the fields of PodLogOptions.
func (a *Agent) serveLogs(w http.ResponseWriter, r *http.Request) {
	pod := a.podOf(w, r)
	if pod == nil {
		return
	}
	q := r.URL.Query()
	o, err := logOptions(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in, err := a.logInstance(r.Context(), pod, mux.Vars(r)["container"], q.Get("previous") == "true")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.Alive = func() bool {
		s, err := a.cri.ContainerStatus(r.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: in.Id})
		return err == nil && s.Status.State == runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	w.Header().Set("Content-Type", "text/plain")
	control := http.NewResponseController(w)
	_ = control.Flush() // a follower learns at once that it is connected
	err = logs.Read(r.Context(), in.LogPath, o, w, func() { _ = control.Flush() })
	if err != nil && r.Context().Err() == nil {
		a.log.Warn("log could not be read to its end", "log", in.LogPath, "err", err)
		_, _ = io.WriteString(w, fmt.Sprintf("failed to read the log: %v\n", err))
	}
}

// logOptions reads the query. sinceTime wins over sinceSeconds, which the API server refuses together.
func logOptions(q url.Values) (o logs.Options, err error) {
	o.Follow, o.Timestamps = q.Get("follow") == "true", q.Get("timestamps") == "true"
	if s := strings.ToLower(q.Get("stream")); s != "" && s != "all" {
		o.Stream = s
	}
	if o.TailLines, err = queryInt(q, "tailLines"); err != nil {
		return o, err
	}
	if o.LimitBytes, err = queryInt(q, "limitBytes"); err != nil {
		return o, err
	}
	since, err := queryInt(q, "sinceSeconds")
	if err != nil {
		return o, err
	}
	if since != nil {
		o.Since = time.Now().Add(-time.Duration(*since) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" {
		if o.Since, err = time.Parse(time.RFC3339, text); err != nil {
			return o, fmt.Errorf("sinceTime: %w", err)
		}
	}
	return o, nil
}

func queryInt(q url.Values, name string) (*int64, error) {
	text := q.Get(name)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%s: %q is not a number of zero or more", name, text)
	}
	return &n, nil
}

// logInstance finds the instance of a container whose log is wanted: the newest that was started (one that was not has no
// log yet) or, for previous, the one that the pod's status calls the last one to have ended.
func (a *Agent) logInstance(ctx context.Context, pod *corev1.Pod, container string, previous bool) (*podstate.Instance, error) {
	state, err := a.cri.podState(ctx, pod.UID)
	if err != nil {
		return nil, err
	}
	status := containerStatus(pod, container)
	list := state.Containers[container]
	if previous {
		if status != nil && status.LastTerminationState.Terminated != nil {
			for _, in := range list {
				if strings.HasSuffix(status.LastTerminationState.Terminated.ContainerID, "://"+in.Id) {
					return in, nil
				}
			}
		}
		return nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	}
	for _, in := range list {
		if in.State != runtimeapi.ContainerState_CONTAINER_CREATED {
			return in, nil
		}
	}
	reason := podstate.ReasonContainerCreating
	if status != nil && status.State.Waiting != nil {
		reason = status.State.Waiting.Reason
	}
	return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, reason)
}

func containerStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
