package nodeagent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/mux"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/internal/lingering"
	"kontiki/nodeagent/podstate"
)

// Exec, attach and port-forward work in two steps, as CRI has it: the agent asks the runtime for a URL of its streaming
// server, and passes the upgraded connection through to it, bytes untouched. What the bytes are (SPDY or an
// old WebSocket protocol) is between the runtime's server and the client; the newer WebSocket protocols of kubectl are
// translated before they get here, by apiserver/nodeproxy.

// serveExec runs a command in a container.
func (a *Agent) serveExec(w http.ResponseWriter, r *http.Request) {
	in := a.runningInstance(w, r)
	if in == nil {
		return
	}
	q := r.URL.Query()
	resp, err := a.cri.Exec(r.Context(), &runtimeapi.ExecRequest{
		ContainerId: in.Id, Cmd: q["command"], Tty: flag(q, "tty"),
		Stdin: flag(q, "input"), Stdout: flag(q, "output"), Stderr: flag(q, "error") && !flag(q, "tty"),
	})
	pass(w, r, resp.GetUrl(), err)
}

// serveAttach connects to a container's own streams.
func (a *Agent) serveAttach(w http.ResponseWriter, r *http.Request) {
	in := a.runningInstance(w, r)
	if in == nil {
		return
	}
	q := r.URL.Query()
	resp, err := a.cri.Attach(r.Context(), &runtimeapi.AttachRequest{
		ContainerId: in.Id, Tty: flag(q, "tty"),
		Stdin: flag(q, "input"), Stdout: flag(q, "output"), Stderr: flag(q, "error") && !flag(q, "tty"),
	})
	pass(w, r, resp.GetUrl(), err)
}

// servePortForward connects to ports of a pod. The ports come with the streams, or in the query for WebSocket clients.
func (a *Agent) servePortForward(w http.ResponseWriter, r *http.Request) {
	pod := a.podOf(w, r)
	if pod == nil {
		return
	}
	state, err := a.cri.podState(r.Context(), pod.UID)
	if err == nil && state.Sandbox() == nil {
		err = fmt.Errorf("pod %q has no running sandbox", pod.Name)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var ports []int32
	for _, text := range append(r.URL.Query()["port"], r.URL.Query()["ports"]...) {
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			http.Error(w, fmt.Sprintf("port %q is not a number", text), http.StatusBadRequest)
			return
		}
		ports = append(ports, int32(port))
	}
	resp, err := a.cri.PortForward(r.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: state.Sandbox().Id, Port: ports})
	pass(w, r, resp.GetUrl(), err)
}

// flag reads a boolean of the kubelet's query, which is "1"; "true" is taken as well.
func flag(q url.Values, name string) bool { return q.Get(name) == "1" || q.Get(name) == "true" }

// runningInstance finds the running container that a request is about, or answers with an error.
func (a *Agent) runningInstance(w http.ResponseWriter, r *http.Request) *podstate.Instance {
	pod := a.podOf(w, r)
	if pod == nil {
		return nil
	}
	name := mux.Vars(r)["container"]
	state, err := a.cri.podState(r.Context(), pod.UID)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil
	}
	in := state.Latest(name)
	if !in.Running() {
		http.Error(w, fmt.Sprintf("container not found (%q)", name), http.StatusNotFound)
		return nil
	}
	return in
}

// dialTimeout bounds the connection to the runtime's streaming server, which is on this machine.
const dialTimeout = 5 * time.Second

// pass sends the client's request to the runtime's streaming server and joins the two connections: the answer, and all that
// comes after it, goes through as it is.
func pass(w http.ResponseWriter, r *http.Request, address string, err error) {
	if err != nil {
		http.Error(w, plainError(err), http.StatusInternalServerError)
		return
	}
	location, err := url.Parse(address)
	if err != nil {
		http.Error(w, fmt.Sprintf("streaming URL of the runtime: %v", err), http.StatusInternalServerError)
		return
	}
	runtime, err := net.DialTimeout("tcp", location.Host, dialTimeout)
	if err != nil {
		http.Error(w, fmt.Sprintf("streaming server of the runtime: %v", err), http.StatusInternalServerError)
		return
	}
	defer runtime.Close()
	out := r.Clone(r.Context())
	out.URL, out.Host = location, location.Host
	if err := out.Write(runtime); err != nil {
		http.Error(w, fmt.Sprintf("streaming server of the runtime: %v", err), http.StatusInternalServerError)
		return
	}
	client, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	lingering.Join(buffered{client, ahead.Reader}, runtime)
}

// buffered is a connection of which a reader may hold the next bytes.
type buffered struct {
	net.Conn
	reader io.Reader
}

// Read implements net.Conn.
func (b buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }
