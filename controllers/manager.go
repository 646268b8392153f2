package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"kontiki/internal/apiclient"
	"kontiki/internal/bootstraptoken"
)

// manager holds what reconcilers share: the informers (one watch per resource however many reconcilers look at it), the
// event broadcaster, and the controllers themselves.
type manager struct {
	config Config
	shared informers.SharedInformerFactory
	// nodeLeases sees only the namespace of node heartbeats, rootCAs only the ConfigMaps named kube-root-ca.crt,
	// bootstrapTokens and accountTokens only the Secrets of such tokens: whole
	// caches of leases and ConfigMaps would cost memory for nothing.
	nodeLeases, rootCAs, bootstrapTokens, accountTokens informers.SharedInformerFactory

	broadcaster record.EventBroadcaster
	controllers []*controller
	// monitors see every object that can be deleted (addGarbageCollector).
	monitors *monitors
	// retryMax is how long a request waits at most that fails again and again.
	retryMax time.Duration
	// background are the loops that are not reconcilers: each runs until its context ends.
	background []func(context.Context)
}

func newManager(config Config) (*manager, error) {
	m := &manager{config: config, retryMax: retryMax}
	client, err := m.client("informers")
	if err != nil {
		return nil, err
	}
	slim := informers.WithTransform(apiclient.DropManagedFields)
	m.shared = informers.NewSharedInformerFactoryWithOptions(client, 0, slim)
	m.nodeLeases = informers.NewSharedInformerFactoryWithOptions(client, 0, slim, informers.WithNamespace(corev1.NamespaceNodeLease))
	m.rootCAs = informers.NewSharedInformerFactoryWithOptions(client, 0, slim, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", rootCAName).String()
	}))
	m.bootstrapTokens = informers.NewSharedInformerFactoryWithOptions(client, 0, slim, informers.WithNamespace(bootstraptoken.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("type", string(bootstraptoken.Type)).String()
		}))
	m.accountTokens = informers.NewSharedInformerFactoryWithOptions(client, 0, slim, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String()
	}))
	events, err := m.client("events")
	if err != nil {
		return nil, err
	}
	m.broadcaster = record.NewBroadcaster()
	m.broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: events.CoreV1().Events("")})
	return m, nil
}

// adder adds a reconciler to a manager.
type adder func(*manager) error

func (m *manager) addAll(reconcilers []adder) error {
	for _, add := range reconcilers {
		if err := add(m); err != nil {
			return err
		}
	}
	return nil
}

// client returns a typed client whose user agent names its user, so that raft entries and managedFields show which
// reconciler wrote something. The number of workers bounds the load.
func (m *manager) client(name string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(m.restConfig(name))
	if err != nil {
		return nil, fmt.Errorf("controllers: client of %s: %w", name, err)
	}
	return client, nil
}

// recorder writes events whose source is the named reconciler.
func (m *manager) recorder(name string) record.EventRecorder {
	return m.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: name + "-controller"})
}

// restConfig is for a server in this process or on this machine, where compressing would only cost: each watch that is
// compressed takes 50 KB in its client, and the garbage collector has one for every kind.
func (m *manager) restConfig(name string) *rest.Config {
	config := apiclient.Config(m.config.REST, name+"-controller/kontiki")
	config.DisableCompression = true
	return config
}

// add registers a reconciler. Its event handlers are attached before the informers start.
func (m *manager) add(name string, workers int, r Reconciler) *controller {
	c := newController(name, workers, r, m.retryMax, m.config.Log)
	m.controllers = append(m.controllers, c)
	return c
}

// run blocks until ctx ends and the last worker has stopped. Workers start when all caches are filled.
func (m *manager) run(ctx context.Context) error {
	factories := []informers.SharedInformerFactory{m.shared, m.nodeLeases, m.rootCAs, m.bootstrapTokens, m.accountTokens}
	for _, factory := range factories {
		factory.Start(ctx.Done())
		defer factory.Shutdown()
	}
	for _, factory := range factories {
		factory.WaitForCacheSync(ctx.Done())
	}
	if ctx.Err() != nil {
		return nil
	}
	m.work(ctx)
	return nil
}

// work runs the reconcilers until ctx ends and the last of them has stopped.
func (m *manager) work(ctx context.Context) {
	m.config.Log.Info("controllers started", "count", len(m.controllers))
	var running sync.WaitGroup
	for _, c := range m.controllers {
		running.Go(func() { c.run(ctx) })
	}
	for _, loop := range m.background {
		running.Go(func() { loop(ctx) })
	}
	running.Wait()
}
