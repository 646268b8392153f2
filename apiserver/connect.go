package apiserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/nodeproxy"
	"kontiki/apiserver/storage"
)

// connect opens a stream to what runs the target's object: a node's agent, a pod or an endpoint. The
// objects that say where that is are read here; nodeproxy knows no store.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, t *target) error {
	if err := s.admitConnect(r, t); err != nil {
		return err
	}
	name := t.name
	if t.sub.Name == "proxy" {
		var err error
		if name, err = nodeproxy.TargetName(t.name); err != nil {
			return err
		}
	}
	obj, err := t.store.Get(r.Context(), t.namespace, name, storage.GetOptions{})
	if err != nil {
		return t.storeError(err, name)
	}
	if rootless(r, t) {
		redirectToRoot(w, r)
		return nil
	}
	switch o := obj.Object().(type) {
	case *corev1.Pod:
		node, err := s.nodeOf(r, o)
		if err != nil {
			return err
		}
		return s.nodes.Pod(w, r, o, node, t.sub.Name, t.name, t.subpath)
	case *corev1.Node:
		return s.nodes.Node(w, r, o, t.name, t.subpath)
	case *corev1.Service:
		slices, err := s.slicesOf(r.Context(), o, "")
		if err != nil {
			return err
		}
		return s.nodes.Service(w, r, o, slices, t.name, t.subpath)
	}
	return errNotFoundPath()
}

// rootless says whether a client reads /…/proxy, which leads nowhere by relative links: only /…/proxy/ does. As Kubernetes, it
// is sent there (kubernetes/kubernetes#4958), but not with an upgrade, which no client repeats.
func rootless(r *http.Request, t *target) bool {
	return t.sub.Name == "proxy" && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		t.subpath == "" && !strings.HasSuffix(r.URL.Path, "/") && r.Header.Get("Upgrade") == ""
}

func redirectToRoot(w http.ResponseWriter, r *http.Request) {
	location := url.URL{Path: r.URL.Path + "/", RawQuery: r.URL.RawQuery}
	w.Header().Set("Location", location.String())
	w.WriteHeader(http.StatusMovedPermanently)
}

// nodeOf returns the node of a pod; nil if it has none that exists.
func (s *Server) nodeOf(r *http.Request, pod *corev1.Pod) (*corev1.Node, error) {
	if pod.Spec.NodeName == "" {
		return nil, nil
	}
	nodes := s.storeOf(s.table.Lookup(corev1.SchemeGroupVersion.WithResource("nodes")))
	obj, err := nodes.Get(r.Context(), "", pod.Spec.NodeName, storage.GetOptions{})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return obj.Object().(*corev1.Node), nil
}

// slicesOf returns the endpoint slices of a service, at a resourceVersion as in lists: none in particular is now, "0" what this
// server has at hand.
func (s *Server) slicesOf(ctx context.Context, service *corev1.Service, resourceVersion string) ([]*discoveryv1.EndpointSlice, error) {
	row := s.table.Lookup(schema.GroupVersionResource{Group: discoveryv1.GroupName, Version: "v1", Resource: "endpointslices"})
	list, err := s.storeOf(row).List(ctx, storage.ListOptions{ResourceVersion: resourceVersion, Selection: storage.Selection{
		Namespace: service.Namespace,
		Labels:    labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}),
	}})
	if err != nil {
		return nil, err
	}
	var out []*discoveryv1.EndpointSlice
	for _, item := range list.Items {
		if slice, ok := item.Object().(*discoveryv1.EndpointSlice); ok {
			out = append(out, slice)
		}
	}
	return out, nil
}
