package nodeproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxErrorBody bounds what of an agent's refusal is passed on.
const maxErrorBody = 2 << 10

// logs serves pods/log: the agent's answer as it comes, flushed as it comes; in messages to a WebSocket.
func (p *Proxy) logs(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, node *corev1.Node) error {
	query := r.URL.Query()
	if err := checkLogOptions(pod.Name, query); err != nil {
		return err
	}
	isSocket := websocket.IsWebSocketUpgrade(r)
	if isSocket {
		if err := checkLogProtocols(r); err != nil {
			return err
		}
	}
	name, err := container(pod, query.Get("container"))
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" { // not scheduled: it has said nothing
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err := hosted(pod, node); err != nil {
		return err
	}
	location, err := agentURL(node, "/containerLogs/"+pod.Namespace+"/"+pod.Name+"/"+name, forwarded(pod, query))
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	resp, err := p.ask(ctx, location)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if isSocket {
		sendSocket(w, r, resp.Body, end)
		return nil
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	copyFlushing(w, resp.Body)
	return nil
}

// forwarded are the options that the agent is told, and which pod of that name is meant.
func forwarded(pod *corev1.Pod, query url.Values) url.Values {
	forward := url.Values{"uid": {string(pod.UID)}}
	for _, key := range []string{"follow", "previous", "timestamps"} {
		if truthy(query, key) {
			forward.Set(key, "true")
		}
	}
	for _, key := range []string{"tailLines", "sinceSeconds", "sinceTime", "limitBytes", "stream"} {
		if v := query.Get(key); v != "" {
			forward.Set(key, v)
		}
	}
	return forward
}

// ask sends a GET to an agent; anything but 200 is an error, and then there is no body to close.
func (p *Proxy) ask(ctx context.Context, location *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	resp, err := p.agent.RoundTrip(req)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

// refusal turns an agent's error answer into a status of the API.
func refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what could be read is the message
	message := strings.TrimSpace(string(body))
	switch resp.StatusCode {
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(message)
	case http.StatusNotFound:
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", corev1.Resource("pods/log"), "", message, 0, true)
	}
	return apierrors.NewInternalError(fmt.Errorf("%s", message))
}

// copyFlushing copies until either side is done, and holds nothing back.
func copyFlushing(w http.ResponseWriter, body io.Reader) {
	control := http.NewResponseController(w)
	_ = control.Flush()
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
			_ = control.Flush()
		}
		if err != nil {
			return
		}
	}
}

// checkLogOptions validates the query as Kubernetes validates a PodLogOptions.
func checkLogOptions(pod string, q url.Values) error {
	var errs field.ErrorList
	number := func(name string, least int64) {
		text := q.Get(name)
		if text == "" {
			return
		}
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(field.NewPath(name), text, "must be an integer"))
		case n < least && least == 0:
			errs = append(errs, field.Invalid(field.NewPath(name), n, "must be greater than or equal to 0"))
		case n < least:
			errs = append(errs, field.Invalid(field.NewPath(name), n, "must be greater than 0"))
		}
	}
	number("tailLines", 0)
	number("limitBytes", 1)
	number("sinceSeconds", 1)
	if text := q.Get("sinceTime"); text != "" {
		if q.Get("sinceSeconds") != "" {
			errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
		}
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("sinceTime"), text, "must be an RFC 3339 time"))
		}
	}
	if s := q.Get("stream"); s != "" && s != corev1.LogStreamAll && s != corev1.LogStreamStdout && s != corev1.LogStreamStderr {
		errs = append(errs, field.NotSupported(field.NewPath("stream"), s, []string{corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr}))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), pod, errs)
	}
	return nil
}

// truthy reads a boolean of a query as the API does: present and neither "false" nor "0".
func truthy(q url.Values, name string) bool {
	v, ok := q[name]
	return ok && len(v) > 0 && v[0] != "false" && v[0] != "0"
}
