package ingress

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/utils/ptr"
)

// errNoEndpoints: a backend is no Service, not there, or has nobody ready.
var errNoEndpoints = errors.New("no endpoint is ready")

// backend is a port of a Service.
type backend struct {
	namespace, service string // service "": none that is served here
	portName           string
	port               int32
}

func backendOf(namespace string, b *networkingv1.IngressBackend) backend {
	if b.Service == nil {
		return backend{}
	}
	return backend{namespace, b.Service.Name, b.Service.Port.Name, b.Service.Port.Number}
}

// endpoints finds the endpoints of backends.
type endpoints struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// of returns the addresses of a backend's ready endpoints, in any order.
func (e *endpoints) of(b backend) (addresses []string, err error) {
	s, err := e.services.Services(b.namespace).Get(b.service)
	if b.service == "" || err != nil || s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil, errNoEndpoints
	}
	name, ok := portOf(s, b)
	if !ok {
		return nil, errNoEndpoints
	}
	list, _ := e.slices.EndpointSlices(b.namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: b.service}))
	for _, slice := range list {
		for _, p := range slice.Ports {
			if ptr.Deref(p.Name, "") != name || p.Port == nil || ptr.Deref(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) && len(endpoint.Addresses) > 0 {
					addresses = append(addresses, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	if len(addresses) == 0 {
		return nil, errNoEndpoints
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	return addresses, nil
}

// portOf is the name of the Service's port that a backend means.
func portOf(s *corev1.Service, b backend) (string, bool) {
	for _, p := range s.Spec.Ports {
		if b.portName != "" && p.Name == b.portName || b.portName == "" && p.Port == b.port {
			return p.Name, true
		}
	}
	return "", false
}
