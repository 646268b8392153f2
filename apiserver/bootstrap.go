package apiserver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kontiki/apiserver/storage"
)

// systemNamespaces exist in every cluster, before anything else does.
var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespaceDefault, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// bootstrapManager owns the fields of the objects that the server itself writes.
const bootstrapManager = "kontiki-apiserver"

// How often the bootstrap objects are checked; and, until they all exist for the first time, tried.
const (
	bootstrapPeriod = 30 * time.Second
	bootstrapRetry  = 200 * time.Millisecond
)

// keepBootstrapObjects writes what every client expects to find, and writes it again if somebody
// removes it, until ctx ends.
func (s *Server) keepBootstrapObjects(ctx context.Context) {
	for {
		wait := bootstrapPeriod
		if err := s.bootstrap(ctx); err != nil {
			if !s.booted.Load() {
				wait = bootstrapRetry
			}
			if ctx.Err() == nil {
				s.log.Warn("bootstrap objects could not be written", "error", err)
			}
		} else {
			s.booted.Store(true)
			s.ownership.warmUp() // a few hundred milliseconds that the first write would have to wait
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (s *Server) bootstrap(ctx context.Context) error {
	for _, name := range systemNamespaces {
		if err := s.ensure(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil); err != nil {
			return err
		}
	}
	if err := s.ensure(ctx, metav1.NamespaceDefault, s.kubernetesService(), nil); err != nil {
		return err
	}
	if !reachable(s.config.AdvertiseAddress) {
		return nil
	}
	if err := s.ensure(ctx, metav1.NamespaceDefault, s.kubernetesEndpoints(), s.fitEndpoints); err != nil {
		return err
	}
	return s.ensure(ctx, metav1.NamespaceDefault, s.kubernetesSlice(), s.fitSlice)
}

// reachable says whether pods could reach an address of this machine: endpoints must not name others.
func reachable(address netip.Addr) bool {
	return address.IsValid() && !address.IsLoopback() && !address.IsUnspecified() && !address.IsLinkLocalUnicast()
}

// ensure creates obj if it is not there. If it is, fit, which may be nil, brings it up to date.
func (s *Server) ensure(ctx context.Context, namespace string, obj runtime.Object, fit func(present runtime.Object)) error {
	t, err := s.targetOf(obj, namespace)
	if err != nil {
		return err
	}
	present, err := t.store.Get(ctx, namespace, t.name, storage.GetOptions{})
	options := writeOptions{manager: bootstrapManager}
	if errors.Is(err, storage.ErrNotFound) {
		setDefaults(t.resource, obj)
		_, err = s.create(ctx, t, obj, options)
		if apierrors.IsAlreadyExists(err) {
			return nil // another server was faster
		}
		return err
	}
	if err != nil || fit == nil || upToDate(present.Object(), fit) {
		return err
	}
	_, err = s.change(ctx, t, change{options: options, next: func(_ context.Context, live runtime.Object) (runtime.Object, error) {
		next := live.DeepCopyObject()
		fit(next)
		return s.track(t, live, next, options.manager)
	}})
	return err
}

// upToDate says whether fit has nothing to do. A restart then writes nothing before it is ready.
func upToDate(present runtime.Object, fit func(runtime.Object)) bool {
	next := present.DeepCopyObject()
	fit(next)
	return equality.Semantic.DeepEqual(present, next)
}

// targetOf is the target of a request of the server's own.
func (s *Server) targetOf(obj runtime.Object, namespace string) (*target, error) {
	kinds, _, err := s.table.Scheme().ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	row := s.table.ByKind(kinds[0])
	if row == nil {
		return nil, errNotFoundPath()
	}
	return &target{resource: row, store: s.storeOf(row), namespace: namespace, name: accessor(obj).GetName()}, nil
}

const kubernetesName = "kubernetes"

// kubernetesService is how pods find the API: the first address of the service range.
func (s *Server) kubernetesService() *corev1.Service {
	address := s.config.ServiceCIDR.Masked().Addr().Next().String()
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{"provider": "kubernetes", "component": "apiserver"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:  address,
			ClusterIPs: []string{address},
			Ports:      []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(int32(s.config.AdvertisePort))}},
		},
	}
}

func (s *Server) kubernetesEndpoints() *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Name: kubernetesName, Namespace: metav1.NamespaceDefault,
		Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
	}}
	s.fitEndpoints(e)
	return e
}

// fitEndpoints adds this server to the addresses. Not yet: removing servers that are gone (with
// several servers, each needs a lease to be counted).
func (s *Server) fitEndpoints(obj runtime.Object) {
	e := obj.(*corev1.Endpoints)
	port := corev1.EndpointPort{Name: "https", Port: int32(s.config.AdvertisePort), Protocol: corev1.ProtocolTCP}
	addresses := map[netip.Addr]bool{s.config.AdvertiseAddress: true}
	for _, subset := range e.Subsets {
		for _, address := range subset.Addresses {
			if parsed, err := netip.ParseAddr(address.IP); err == nil {
				addresses[parsed] = true
			}
		}
	}
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{port}}
	for _, address := range sortedAddresses(addresses) {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: address.String()})
	}
	e.Subsets = []corev1.EndpointSubset{subset}
}

func (s *Server) kubernetesSlice() *discoveryv1.EndpointSlice {
	family := discoveryv1.AddressTypeIPv4
	if s.config.AdvertiseAddress.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesName},
		},
		AddressType: family,
	}
	s.fitSlice(slice)
	return slice
}

func (s *Server) fitSlice(obj runtime.Object) {
	slice := obj.(*discoveryv1.EndpointSlice)
	name, port, protocol, ready := "https", int32(s.config.AdvertisePort), corev1.ProtocolTCP, true
	slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	addresses := map[netip.Addr]bool{s.config.AdvertiseAddress: true}
	for _, endpoint := range slice.Endpoints {
		for _, address := range endpoint.Addresses {
			if parsed, err := netip.ParseAddr(address); err == nil {
				addresses[parsed] = true
			}
		}
	}
	slice.Endpoints = nil
	for _, address := range sortedAddresses(addresses) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{address.String()},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
}

func sortedAddresses(set map[netip.Addr]bool) []netip.Addr {
	var list []netip.Addr
	for address := range set {
		list = append(list, address)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}
