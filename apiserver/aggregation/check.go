package aggregation

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How a backend is asked.
const (
	checkTime         = 5 * time.Second // for each answer
	maxChecks         = 32              // at a time
	secondTries       = 4               // at a time, when the first one has failed: the Service may have an endpoint that is good
	maxResourcesBytes = 4 << 20         // of what a backend says it has
)

// check finds out whether a remote is there, and what it has; list is nil if it is not.
func (r *remote) check(ctx context.Context, config Config) (list *metav1.APIResourceList, c *condition) {
	if c := r.checkService(ctx, config); c != nil {
		return nil, c
	}
	list, err := r.ask(ctx)
	if err != nil && r.backend.broken == nil && ctx.Err() == nil {
		list, err = r.askAgain(ctx, err)
	}
	if err != nil {
		return nil, failed("FailedDiscoveryCheck", "%s", ownPort.ReplaceAllString(err.Error(), ""))
	}
	return list, passed()
}

// ownPort is where a connection came from, in an error of package net. It is another one each time, and would have the object
// written each time.
var ownPort = regexp.MustCompile(`\S+:\d+->`)

// checkService judges what the cluster's objects say; nil if they promise a backend.
func (r *remote) checkService(ctx context.Context, config Config) *condition {
	b := r.backend
	service, slices, err := config.Service(ctx, b.namespace, b.name)
	switch {
	case err != nil:
		return unknown("ServiceAccessError", "service/%s in %q cannot be checked due to: %v", b.name, b.namespace, err)
	case service == nil:
		return failed("ServiceNotFound", "service/%s in %q is not present", b.name, b.namespace)
	case service.Spec.Type != corev1.ServiceTypeClusterIP:
		return nil
	}
	port, ok := portName(service, b.port)
	switch {
	case !ok:
		return failed("ServicePortError", "service/%s in %q is not listening on port %d", b.name, b.namespace, b.port)
	case len(slices) == 0:
		return failed("EndpointsNotFound", "cannot find endpointslices for service/%s in %q", b.name, b.namespace)
	case !hasEndpoint(slices, port):
		return failed("MissingEndpoints", "endpointslices for service/%s in %q have no addresses with port name %q", b.name, b.namespace, port)
	}
	return nil
}

func portName(service *corev1.Service, number int32) (name string, ok bool) {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number })
	if i < 0 {
		return "", false
	}
	return service.Spec.Ports[i].Name, true
}

func hasEndpoint(all []*discoveryv1.EndpointSlice, port string) bool {
	ready := func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }
	named := func(p discoveryv1.EndpointPort) bool { return p.Name != nil && *p.Name == port && p.Port != nil }
	return slices.ContainsFunc(all, func(s *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, ready) && slices.ContainsFunc(s.Ports, named)
	})
}

// askAgain asks several endpoints at once, and is content with one good answer.
func (r *remote) askAgain(ctx context.Context, first error) (*metav1.APIResourceList, error) {
	type answer struct {
		list *metav1.APIResourceList
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, secondTries)
	for range secondTries {
		go func() {
			list, err := r.ask(ctx)
			answers <- answer{list, err}
		}()
	}
	for range secondTries {
		if a := <-answers; a.err == nil {
			return a.list, nil // the others are cancelled; the channel has room for them
		}
	}
	return nil, first
}

// ask is one question: a path that every API server has, and that tells what else it has.
func (r *remote) ask(ctx context.Context) (*metav1.APIResourceList, error) {
	path := pathOf(r.gv)
	where := "https://" + r.backend.host() + path
	answer, err := r.backend.get(ctx, path, "", maxResourcesBytes)
	if err != nil {
		return nil, fmt.Errorf("failing or missing response from %s: %w", where, err)
	}
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(answer.body, list); err != nil {
		return nil, fmt.Errorf("the response from %s is no list of resources: %w", where, err)
	}
	if list.GroupVersion != "" && list.GroupVersion != r.gv.String() {
		return nil, fmt.Errorf("the response from %s is about the group version %q", where, list.GroupVersion)
	}
	return list, nil
}
