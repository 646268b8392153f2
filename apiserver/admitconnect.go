package apiserver

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/admission"
)

// admitConnect admits a stream to a node, a pod or a service. What admission changes of how it is asked for it changes in r and t.
// Reading a container's log is none: it is a GET.
func (s *Server) admitConnect(r *http.Request, t *target) error {
	query := r.URL.Query()
	options, err := connectOptions(t, query)
	if err != nil || options == nil {
		return err
	}
	if len(query["dryRun"]) > 0 {
		return badRequest("dryRun is not supported")
	}
	if !admitted(r.Context()) {
		return nil
	}
	asked := withKind(options, t.sub.Kind)
	request := t.admission(r.Context(), nil, nil, writeOptions{})
	request.Operation, request.Object, request.Options = admission.Connect, asked.DeepCopyObject(), nil
	if err := s.admission.Mutate(r.Context(), request); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(asked, request.Object) {
		askFor(r, t, request.Object)
	}
	return s.admission.Validate(r.Context(), request)
}

// askFor is the opposite of connectOptions.
func askFor(r *http.Request, t *target, options runtime.Object) {
	query := r.URL.Query()
	streams := func(stdin, stdout, stderr, tty bool, container string) {
		for name, on := range map[string]bool{"stdin": stdin, "stdout": stdout, "stderr": stderr, "tty": tty} {
			query.Set(name, strconv.FormatBool(on))
		}
		query.Set("container", container)
	}
	switch o := options.(type) {
	case *corev1.PodExecOptions:
		streams(o.Stdin, o.Stdout, o.Stderr, o.TTY, o.Container)
		query["command"] = o.Command
	case *corev1.PodAttachOptions:
		streams(o.Stdin, o.Stdout, o.Stderr, o.TTY, o.Container)
	case *corev1.PodPortForwardOptions:
		query.Del("ports")
		for _, port := range o.Ports {
			query.Add("ports", strconv.Itoa(int(port)))
		}
	case *corev1.PodProxyOptions:
		t.subpath = strings.TrimPrefix(o.Path, "/")
	case *corev1.NodeProxyOptions:
		t.subpath = strings.TrimPrefix(o.Path, "/")
	case *corev1.ServiceProxyOptions:
		t.subpath = strings.TrimPrefix(o.Path, "/")
	}
	changed := *r.URL // which others have as well
	changed.RawQuery = query.Encode()
	r.URL = &changed
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
