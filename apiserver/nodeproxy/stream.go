package nodeproxy

import (
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"kontiki/internal/lingering"
)

// streams are those of a command that a client asks for.
type streams struct{ stdin, stdout, stderr, tty bool }

func streamsOf(q url.Values) (streams, error) {
	s := streams{truthy(q, "stdin"), truthy(q, "stdout"), truthy(q, "stderr"), truthy(q, "tty")}
	if s.tty {
		s.stderr = false // a terminal has one output
	}
	if !s.stdin && !s.stdout && !s.stderr {
		return s, apierrors.NewBadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	return s, nil
}

// query is how the agent is told.
func (s streams) query() url.Values {
	q := url.Values{}
	for name, on := range map[string]bool{"input": s.stdin, "output": s.stdout, "error": s.stderr, "tty": s.tty} {
		if on {
			q.Set(name, "1")
		}
	}
	return q
}

// command serves pods/exec and pods/attach.
func (p *Proxy) command(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, node *corev1.Node, subresource string) error {
	query := r.URL.Query()
	wanted, err := streamsOf(query)
	if err != nil {
		return err
	}
	name, err := container(pod, query.Get("container"))
	if err != nil {
		return err
	}
	if err := hosted(pod, node); err != nil {
		return err
	}
	forward := wanted.query()
	if subresource == "exec" {
		if len(query["command"]) == 0 {
			return apierrors.NewBadRequest("you must specify a command to execute")
		}
		forward["command"] = query["command"]
	}
	forward.Set("uid", string(pod.UID))
	location, err := agentURL(node, fmt.Sprintf("/%s/%s/%s/%s", subresource, pod.Namespace, pod.Name, name), forward)
	if err != nil {
		return err
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		return p.translate(w, r, location, wanted)
	}
	return p.passThrough(w, r, location)
}

// portForward serves pods/portforward.
func (p *Proxy) portForward(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, node *corev1.Node) error {
	if err := hosted(pod, node); err != nil {
		return err
	}
	forward := url.Values{"uid": {string(pod.UID)}}
	if ports := r.URL.Query()["ports"]; len(ports) > 0 {
		forward["port"] = ports
	}
	location, err := agentURL(node, "/portForward/"+pod.Namespace+"/"+pod.Name, forward)
	if err != nil {
		return err
	}
	if wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
		return p.tunnel(w, r, location)
	}
	return p.passThrough(w, r, location)
}

// passThrough sends the client's request to the agent and joins the two connections: the agent's answer, and all that comes
// after it, goes through as it is.
func (p *Proxy) passThrough(w http.ResponseWriter, r *http.Request, location *url.URL) error {
	if !httpstream.IsUpgradeRequest(r) {
		return apierrors.NewBadRequest("Upgrade request required")
	}
	agent, err := proxy.DialURL(r.Context(), location, p.agent.Current())
	if err != nil {
		return errDialing(err)
	}
	defer agent.Close()
	out := withoutCredentials(r)
	out.URL, out.Host = location, location.Host
	if err := out.Write(agent); err != nil {
		return errDialing(err)
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	defer client.Close()
	lingering.Join(&bufferedConn{client, buffered.Reader}, agent)
	return nil
}

func errDialing(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("error dialing backend: %w", err))
}

// withoutCredentials is the request without what the client proved its identity with: agents and pods are not to have it.
func withoutCredentials(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	return r
}

// catcher keeps an error that came before anything was written, for the caller to answer with.
type catcher struct{ err error }

// Error implements proxy.ErrorResponder.
func (c *catcher) Error(_ http.ResponseWriter, _ *http.Request, err error) {
	c.err = err
	if apierrors.ReasonForError(err) == "" {
		c.err = errDialing(err)
	}
}
