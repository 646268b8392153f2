package apiserver

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/aggregation"
	"kontiki/apiserver/flowcontrol"
	"kontiki/apiserver/registry"
)

// Group versions that other servers have (package aggregation) take another way through this one: after authentication,
// audit and impersonation, a request for one is authorized like any other, and then sent on as it is. What it is about is the other
// server's to judge: admission does not run here.

// aggregatedVersion is the group version that a path is about: one of its resources, its discovery or its OpenAPI v3 document.
func aggregatedVersion(path string) (gv schema.GroupVersion, ok bool) {
	path = strings.TrimPrefix(path, "/openapi/v3")
	if rest, found := strings.CutPrefix(path, "/api/"); found {
		gv.Version, _, _ = strings.Cut(rest, "/")
		return gv, gv.Version != ""
	}
	rest, found := strings.CutPrefix(path, "/apis/")
	if !found {
		return gv, false
	}
	gv.Group, rest, _ = strings.Cut(rest, "/")
	gv.Version, _, _ = strings.Cut(rest, "/")
	return gv, gv.Group != "" && gv.Version != ""
}

// matchAggregated finds requests that are for another server.
func (s *Server) matchAggregated(r *http.Request, match *mux.RouteMatch) bool {
	if s.aggregated.Empty() {
		return false
	}
	gv, ok := aggregatedVersion(r.URL.Path)
	if !ok || !s.aggregated.Serves(gv) {
		return false
	}
	match.Vars, _ = resourcePath(r.URL.Path)
	return true
}

// serveAggregated judges whether the user may, and sends the request on.
func (s *Server) serveAggregated(w http.ResponseWriter, r *http.Request) error {
	facts := factsOf(r.Context())
	gv, _ := aggregatedVersion(r.URL.Path)
	facts.group = gv.Group
	t := aggregatedTarget(r)
	flow := flowcontrol.Request{User: facts.user.Name, Groups: facts.user.Groups, Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	if t == nil {
		if err := s.pathAccess(r); err != nil {
			return err
		}
		t = &target{verb: "get"}
	} else {
		facts.verb = t.verb // not the resource: clients can make up any, and a metric keeps it
		if err := s.authorizeTarget(r.Context(), t); err != nil {
			return err
		}
		flow = t.flowRequest(facts.user)
	}
	facts.longRunning = t.verb == "watch" || streams(t, r)
	request := aggregation.Request{
		ID: facts.id, Stream: facts.longRunning,
		User: aggregation.User{Name: facts.user.Name, UID: facts.user.UID, Groups: facts.user.Groups, Extra: facts.user.Extra},
	}
	leave, err := s.inFlight.enter(w, r, flow)
	if err != nil {
		return err
	}
	defer leave()
	if facts.longRunning {
		request.Begun = leave
		return s.streamAggregated(w, r, gv, t.verb == "watch", request)
	}
	timeout, err := t.timeout(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	boundBody(w, r, timeout)
	return s.aggregated.Proxy(w, r.WithContext(ctx), gv, request)
}

// streamAggregated sends on what may last. A watch ends when this server stops, as its own do: its client goes on at another.
func (s *Server) streamAggregated(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion, isWatch bool, request aggregation.Request) error {
	defer s.inFlight.stay()()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if isWatch {
		defer context.AfterFunc(s.stopping, cancel)()
	}
	return s.aggregated.Proxy(w, r.WithContext(ctx), gv, request)
}

// aggregatedTarget is what a request is about, as authorizers see it; nil if it is for no resource.
func aggregatedTarget(r *http.Request) *target {
	vars := mux.Vars(r)
	if vars["resource"] == "" {
		return nil
	}
	t := &target{
		verb:      auditVerb(r, vars),
		namespace: vars["namespace"], name: vars["name"], subpath: vars["subpath"],
		resource: &registry.Resource{GroupVersionResource: schema.GroupVersionResource{
			Group: vars["group"], Version: vars["version"], Resource: vars["resource"],
		}},
	}
	if t.verb == "" {
		t.verb = strings.ToLower(r.Method)
	}
	if sub := vars["subresource"]; sub != "" {
		t.sub = &registry.Subresource{Name: sub}
	}
	t.narrowing = narrowingOf(r, t.verb)
	return t
}

// streamNames are the subresources that last, as kube-apiserver has it.
var streamNames = []string{"attach", "exec", "log", "portforward", "proxy"}

// streams says whether a request may last because of what it is for, or since it asks for another protocol.
func streams(t *target, r *http.Request) bool {
	upgrade := slices.ContainsFunc(r.Header.Values("Connection"), func(v string) bool { return strings.Contains(strings.ToLower(v), "upgrade") })
	return upgrade || t.sub != nil && slices.Contains(streamNames, t.sub.Name)
}

// openAggregation makes what knows the other servers.
func (s *Server) openAggregation() {
	s.aggregated = aggregation.New(aggregation.Config{
		TLS: s.config.FrontProxyTLS, Endpoint: s.endpointOf, Service: s.serviceAndSlices, Report: s.reportAPIService, Log: s.log,
	})
	s.apiServices = newAPIServices(s)
}

// serviceAndSlices returns a Service, nil if there is none, and its endpoints.
func (s *Server) serviceAndSlices(ctx context.Context, namespace, name string) (*corev1.Service, []*discoveryv1.EndpointSlice, error) {
	found, err := s.find(ctx, corev1.SchemeGroupVersion.WithResource("services"), namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	service := found.(*corev1.Service)
	endpoints, err := s.slicesOf(ctx, service, "0")
	return service, endpoints, err
}
