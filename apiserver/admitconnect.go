package apiserver

import (
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/admission"
)

// admitConnect admits a stream to a node, a pod or a service. Reading a container's log is none: it is a GET.
func (s *Server) admitConnect(r *http.Request, t *target) error {
	if !admitted(r.Context()) {
		return nil
	}
	options, err := connectOptions(t, r.URL.Query())
	if err != nil || options == nil {
		return err
	}
	request := t.admission(r.Context(), nil, nil, writeOptions{})
	request.Operation, request.Object, request.Options = admission.Connect, withKind(options, t.sub.Kind), nil
	if err := s.admission.Mutate(r.Context(), request); err != nil {
		return err
	}
	return s.admission.Validate(r.Context(), request)
}

// connectOptions reads how a stream is asked for; nil if it is no stream.
func connectOptions(t *target, query url.Values) (runtime.Object, error) {
	path := ""
	if t.subpath != "" {
		path = "/" + t.subpath
	}
	switch t.sub.Kind.Kind {
	case "PodExecOptions":
		return &corev1.PodExecOptions{
			Stdin: truthy(query, "stdin"), Stdout: truthy(query, "stdout"), Stderr: truthy(query, "stderr"), TTY: truthy(query, "tty"),
			Container: query.Get("container"), Command: query["command"],
		}, nil
	case "PodAttachOptions":
		return &corev1.PodAttachOptions{
			Stdin: truthy(query, "stdin"), Stdout: truthy(query, "stdout"), Stderr: truthy(query, "stderr"), TTY: truthy(query, "tty"),
			Container: query.Get("container"),
		}, nil
	case "PodPortForwardOptions":
		options := &corev1.PodPortForwardOptions{}
		for _, port := range query["ports"] {
			number, err := strconv.ParseInt(port, 10, 32)
			if err != nil {
				return nil, badRequest("invalid port %q to forward", port)
			}
			options.Ports = append(options.Ports, int32(number))
		}
		return options, nil
	case "PodProxyOptions":
		return &corev1.PodProxyOptions{Path: path}, nil
	case "NodeProxyOptions":
		return &corev1.NodeProxyOptions{Path: path}, nil
	case "ServiceProxyOptions":
		return &corev1.ServiceProxyOptions{Path: path}, nil
	}
	return nil, nil
}
