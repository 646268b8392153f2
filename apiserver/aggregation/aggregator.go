package aggregation

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver/discovery"
	"kontiki/internal/livetls"
)

// Config of an Aggregator. Its funcs are called from many goroutines.
type Config struct {
	// TLS has the client certificate by which backends know the front proxy. Nil: none is shown, and no backend will believe
	// who the user is.
	TLS livetls.Source
	// Endpoint picks a ready endpoint of a Service, host:port.
	Endpoint func(ctx context.Context, namespace, service string, port int32) (string, error)
	// Service returns a Service and its endpoints; nil if there is no such Service.
	Service func(ctx context.Context, namespace, service string) (*corev1.Service, []*discoveryv1.EndpointSlice, error)
	// Report is told what a check has found, each time: it writes it into the object, if it is to.
	Report func(ctx context.Context, name string, found apiregistrationv1.APIServiceCondition)
	Log    *slog.Logger // nil discards
}

// Aggregator knows the APIServices of the cluster. Its methods may be called from many goroutines.
type Aggregator struct {
	config Config
	log    *slog.Logger
	checks chan struct{} // has a token for each check that runs

	ctx     context.Context // of the goroutines that check; done when Close begins
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards what follows, and is not held while anybody waits
	services map[string]*remote
	backends map[place]*backend

	routes atomic.Pointer[map[schema.GroupVersion]*remote]
	others atomic.Pointer[discovery.Others]
	orders map[schema.GroupVersion]discovery.Priority // guarded by mu: what others is made of beside services
}

// remote is an APIService that leads to another server.
type remote struct {
	name    string
	gv      schema.GroupVersion
	backend *backend
	stop    context.CancelFunc // ends its checks
	look    chan struct{}      // has room for one: check now

	mu        sync.Mutex // guards what follows
	object    *apiregistrationv1.APIService
	found     *condition                            // of the last check; nil before the first
	resources []apidiscoveryv2.APIResourceDiscovery // that the backend last said it has
}

// New makes an Aggregator that knows of no APIService.
func New(config Config) *Aggregator {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	a := &Aggregator{
		config: config, log: config.Log, checks: make(chan struct{}, maxChecks),
		services: map[string]*remote{}, backends: map[place]*backend{},
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.routes.Store(&map[schema.GroupVersion]*remote{})
	a.others.Store(&discovery.Others{})
	return a
}

// Close ends all checks and closes idle connections. Requests that run end as they would.
func (a *Aggregator) Close() {
	a.cancel()
	a.running.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.backends {
		b.close()
	}
}

// Set takes the APIServices of the cluster into use. One that has not changed is not disturbed.
func (a *Aggregator) Set(services []*apiregistrationv1.APIService) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := map[string]*remote{}
	a.orders = map[schema.GroupVersion]discovery.Priority{}
	for _, s := range services {
		gv := groupVersionOf(s)
		a.orders[gv] = discovery.Priority{Group: s.Spec.GroupPriorityMinimum, Version: s.Spec.VersionPriority}
		if isRemote(s) {
			next[s.Name] = a.keep(s, gv)
		}
	}
	for name, old := range a.services {
		if next[name] != old {
			old.stop()
		}
	}
	a.services = next
	routes := map[schema.GroupVersion]*remote{}
	for _, r := range next {
		routes[r.gv] = r
	}
	a.dropBackends()
	a.routes.Store(&routes)
	a.publish()
}

// keep returns the remote of an APIService, the one there is if it leads to the same place. a.mu is held.
func (a *Aggregator) keep(s *apiregistrationv1.APIService, gv schema.GroupVersion) *remote {
	to := placeOf(s)
	if old := a.services[s.Name]; old != nil && old.backend.place == to {
		old.mu.Lock()
		defer old.mu.Unlock()
		old.object = s
		return old
	}
	b := a.backends[to]
	if b == nil {
		b = newBackend(to, a.config)
		a.backends[to] = b
	}
	r := &remote{name: s.Name, gv: gv, backend: b, look: make(chan struct{}, 1), object: s}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(a.ctx)
	a.running.Go(func() { a.watch(ctx, r) })
	return r
}

// dropBackends forgets those that no APIService leads to. a.mu is held.
func (a *Aggregator) dropBackends() {
	used := map[*backend]bool{}
	for _, r := range a.services {
		used[r.backend] = true
	}
	maps.DeleteFunc(a.backends, func(_ place, b *backend) bool {
		if !used[b] {
			b.close()
		}
		return !used[b]
	})
}

// publish makes a new Others if it differs from the one there is. a.mu is held.
func (a *Aggregator) publish() {
	next := &discovery.Others{Priorities: a.orders}
	for _, r := range a.services {
		if next.Versions == nil {
			next.Versions = map[schema.GroupVersion]apidiscoveryv2.APIVersionDiscovery{}
		}
		next.Versions[r.gv] = r.discovery()
	}
	if !reflect.DeepEqual(next, a.others.Load()) {
		a.others.Store(next)
	}
}

// Others is what backends add to discovery: the same pointer as long as it is the same.
func (a *Aggregator) Others() *discovery.Others { return a.others.Load() }

// Empty says that no APIService leads anywhere else.
func (a *Aggregator) Empty() bool { return len(*a.routes.Load()) == 0 }

// Changed has everything checked now that is behind a Service.
func (a *Aggregator) Changed(namespace, service string) {
	for _, r := range *a.routes.Load() {
		if r.backend.namespace == namespace && r.backend.name == service {
			r.poke()
		}
	}
}

// CheckAll has everything checked now.
func (a *Aggregator) CheckAll() {
	for _, r := range *a.routes.Load() {
		r.poke()
	}
}

func (r *remote) poke() {
	select {
	case r.look <- struct{}{}:
	default:
	}
}

// isRemote says whether an APIService leads to another server.
func isRemote(s *apiregistrationv1.APIService) bool {
	return s.Spec.Service != nil && s.Spec.Group != apiregistrationv1.GroupName
}

func groupVersionOf(s *apiregistrationv1.APIService) schema.GroupVersion {
	return schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version}
}
