package nodeproxy

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/internal/livetls"
)

// Config of a Proxy.
type Config struct {
	// TLS has the client certificate that agents know the API server by, and the CA of the agents. Nil has neither.
	TLS livetls.Source
	Log *slog.Logger // nil discards
}

// Proxy connects clients with node agents and pods. It is safe for concurrent use.
type Proxy struct {
	log   *slog.Logger
	agent *livetls.Transport // to agents, with the client certificate
	plain *http.Transport    // to pods and services, whose certificates nobody can check
}

// dialTimeout bounds a connection to a node or pod; what is then sent over it may take as long as it likes.
const dialTimeout = 30 * time.Second

// New returns a proxy.
func New(cfg Config) *Proxy {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	transport := func(config *tls.Config) *http.Transport {
		return &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: config,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute}
	}
	if cfg.TLS == nil {
		cfg.TLS = livetls.Static(&tls.Config{})
	}
	agent := livetls.NewTransport(cfg.TLS, func(config *tls.Config) *http.Transport {
		config.NextProtos = []string{"http/1.1"} // streams upgrade the connection
		return transport(config)
	})
	return &Proxy{log: cfg.Log, agent: agent, plain: transport(&tls.Config{InsecureSkipVerify: true})}
}

// Close drops idle connections.
func (p *Proxy) Close() {
	p.agent.CloseIdleConnections()
	p.plain.CloseIdleConnections()
}

// Pod serves a Connect subresource of a pod. node is the pod's node, nil while the pod has none. path is what
// follows the proxy subresource in the URL. name is the pod as the URL has it, which for the proxy
// subresource may be scheme:name:port.
func (p *Proxy) Pod(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, node *corev1.Node, subresource, name, path string) error {
	switch subresource {
	case "log":
		return p.logs(w, r, pod, node)
	case "exec", "attach":
		return p.command(w, r, pod, node, subresource)
	case "portforward":
		return p.portForward(w, r, pod, node)
	case "proxy":
		return p.podProxy(w, r, pod, name, path)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("pods have no stream %q", subresource))
}

// agentURL is where a node's agent answers.
func agentURL(node *corev1.Node, path string, query url.Values) (*url.URL, error) {
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("node %q has not said where its agent listens", node.Name))
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeHostName} {
		for _, a := range node.Status.Addresses {
			if a.Type == kind {
				host := net.JoinHostPort(a.Address, strconv.Itoa(int(port)))
				return &url.URL{Scheme: "https", Host: host, Path: path, RawQuery: query.Encode()}, nil
			}
		}
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no preferred addresses found for node %q", node.Name))
}

// hosted is the node of a pod that must have one.
func hosted(pod *corev1.Pod, node *corev1.Node) error {
	if pod.Spec.NodeName == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	if node == nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("node %q of pod %q is not registered", pod.Spec.NodeName, pod.Name))
	}
	return nil
}
