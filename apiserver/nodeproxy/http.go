package nodeproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
)

// TargetName takes the object's name out of the name in a proxy URL, which may be NAME, NAME:PORT or
// SCHEME:NAME:PORT.
func TargetName(name string) (object string, err error) {
	_, object, _, ok := utilnet.SplitSchemeNamePort(name)
	if !ok {
		return "", apierrors.NewBadRequest(fmt.Sprintf("invalid proxy target %q", name))
	}
	return object, nil
}

// podProxy serves pods/proxy: a request to a port of the pod, its first one if none is named.
func (p *Proxy) podProxy(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, name, path string) error {
	scheme, _, port, ok := utilnet.SplitSchemeNamePort(name)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q", name))
	}
	if port == "" {
		for i := range pod.Spec.Containers {
			if ports := pod.Spec.Containers[i].Ports; len(ports) > 0 {
				port = strconv.Itoa(int(ports[0].ContainerPort))
				break
			}
		}
	}
	if pod.Status.PodIP == "" {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("pod %q has no address yet", pod.Name))
	}
	if err := mayReach(pod.Status.PodIP); err != nil {
		return err
	}
	return p.forward(w, r, p.plain, location(scheme, pod.Status.PodIP, port), path)
}

// Node serves nodes/proxy: a request to the node's agent or, with a port in the name, to that port of the node.
func (p *Proxy) Node(w http.ResponseWriter, r *http.Request, node *corev1.Node, name, path string) error {
	scheme, _, port, ok := utilnet.SplitSchemeNamePort(name)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid node request %q", name))
	}
	agent, err := agentURL(node, "", nil)
	if err != nil {
		return err
	}
	if port == "" || port == agent.Port() {
		return p.forward(w, r, p.agent.Current(), agent, path)
	}
	return p.forward(w, r, p.plain, location(scheme, agent.Hostname(), port), path)
}

// Service serves services/proxy: a request to one of the service's ready endpoints.
func (p *Proxy) Service(
	w http.ResponseWriter, r *http.Request, service *corev1.Service, slices []*discoveryv1.EndpointSlice, name, path string,
) error {
	scheme, _, port, ok := utilnet.SplitSchemeNamePort(name)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q", name))
	}
	address, err := Endpoint(service, slices, name, port)
	if err != nil {
		return err
	}
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return p.forward(w, r, p.plain, location(scheme, host, number), path)
}

// Endpoint picks one of a service's ready endpoints that serve a port, by its name or number, and returns its address,
// host:port. Errors, which are API status errors, call the service by name.
func Endpoint(service *corev1.Service, slices []*discoveryv1.EndpointSlice, name, port string) (string, error) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
	}
	portName, found := servicePort(service, port)
	if !found {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %q found for service %q", port, service.Name))
	}
	var ready []string
	for _, s := range slices {
		for _, sp := range s.Ports {
			if sp.Port == nil || (sp.Name == nil && portName != "") || (sp.Name != nil && *sp.Name != portName) {
				continue
			}
			for _, e := range s.Endpoints {
				if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
					ready = append(ready, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*sp.Port))))
				}
			}
		}
	}
	if len(ready) == 0 {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
	}
	address := ready[rand.IntN(len(ready))]
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", apierrors.NewInternalError(err)
	}
	return address, mayReach(host)
}

// mayReach refuses addresses that would lead a client to this machine itself or to a cloud's metadata service:
// pods and endpoints are written by users.
func mayReach(address string) error {
	ip := net.ParseIP(address)
	if ip == nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
		return apierrors.NewBadRequest("address not allowed")
	}
	return nil
}

// servicePort finds the name of a service's port by its name or number; a service's only port needs neither.
func servicePort(service *corev1.Service, port string) (name string, found bool) {
	for _, sp := range service.Spec.Ports {
		if port == sp.Name || port == strconv.Itoa(int(sp.Port)) || port == "" && len(service.Spec.Ports) == 1 {
			return sp.Name, true
		}
	}
	return "", false
}

func location(scheme, host, port string) *url.URL {
	if scheme == "" {
		scheme = "http"
	}
	u := &url.URL{Scheme: scheme, Host: host}
	if port != "" {
		u.Host = net.JoinHostPort(host, port)
	}
	return u
}

// forward passes a request on to path below base, upgrades included, and rewrites links of HTML pages so that they lead
// through the API server.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, transport http.RoundTripper, base *url.URL, path string) error {
	target := *base
	target.Path, target.RawQuery = "/"+strings.TrimPrefix(path, "/"), r.URL.RawQuery
	prefix := strings.TrimSuffix(strings.TrimSuffix(r.URL.Path, path), "/")
	caught := &catcher{}
	handler := proxy.NewUpgradeAwareHandler(&target, &proxy.Transport{
		Scheme: r.URL.Scheme, Host: r.URL.Host, PathPrepend: prefix, RoundTripper: transport,
	}, false, false, caught)
	handler.UseLocationHost = true
	handler.ServeHTTP(w, withoutCredentials(r))
	return caught.err
}
