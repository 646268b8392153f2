package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"kontiki/controllers/leader"
)

// Config says where the API server is and how to run. The zero value of every field but REST is usable.
type Config struct {
	// REST reaches the API server with the identity system:kube-controller-manager. Required.
	REST *rest.Config
	// RootCA is the PEM of the cluster's CA, published to every namespace as kube-root-ca.crt. Empty publishes none.
	RootCA []byte
	// LeaderElect makes Run wait for the Lease kube-system/kontiki-controllers before it works, so that several servers can
	// run controllers and one acts. Off, there must be only one.
	LeaderElect bool
	// Identity names this process in the Lease; the host name by default.
	Identity string
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Run starts all reconcilers and blocks until ctx ends, when it returns nil after the last worker has stopped. An API
// server that is not up yet is waited for.
func Run(ctx context.Context, config Config) error {
	if config.REST == nil {
		return fmt.Errorf("%w: REST is nil", ErrNoConfig)
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if !config.LeaderElect {
		return runTerm(ctx, config)
	}
	if config.Identity == "" {
		config.Identity, _ = os.Hostname()
	}
	return leader.Run(ctx, leader.Config{
		REST: config.REST, Name: "kontiki-controllers", Identity: config.Identity, Log: config.Log,
	}, func(ctx context.Context) error { return runTerm(ctx, config) })
}

// runTerm builds everything anew, so that a process that loses and regains leadership starts from fresh caches.
func runTerm(ctx context.Context, config Config) error {
	m, err := newManager(config)
	if err != nil {
		return err
	}
	return m.run(ctx)
}

// manager holds what reconcilers share: the informers (one watch per resource however many reconcilers look at it), the
// event recorder, and the controllers themselves.
type manager struct {
	config Config
	shared informers.SharedInformerFactory
	// nodeLeases sees only the namespace of node heartbeats, rootCAs only the ConfigMaps named kube-root-ca.crt: whole
	// caches of leases and ConfigMaps would cost memory for nothing.
	nodeLeases, rootCAs informers.SharedInformerFactory

	recorder    record.EventRecorder
	broadcaster record.EventBroadcaster
	controllers []*controller
	// background are the loops that are not reconcilers: each runs until its context ends.
	background []func(context.Context)
}

func newManager(config Config) (*manager, error) {
	m := &manager{config: config}
	client, err := m.client("informers")
	if err != nil {
		return nil, err
	}
	slim := informers.WithTransform(dropManagedFields)
	m.shared = informers.NewSharedInformerFactoryWithOptions(client, 0, slim)
	m.nodeLeases = informers.NewSharedInformerFactoryWithOptions(client, 0, slim, informers.WithNamespace(corev1.NamespaceNodeLease))
	m.rootCAs = informers.NewSharedInformerFactoryWithOptions(client, 0, slim, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", rootCAName).String()
	}))
	events, err := m.client("events")
	if err != nil {
		return nil, err
	}
	m.broadcaster = record.NewBroadcaster()
	m.broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: events.CoreV1().Events("")})
	m.recorder = m.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kontiki-controllers"})
	return m, m.addAll()
}

// addAll is the list of reconcilers.
func (m *manager) addAll() error {
	for _, add := range []func(*manager) error{
		addDeployment, addReplicaSet,
		addEndpointSlice, addEndpoints, addEndpointMirror,
		addNamespace, addServiceAccount, addRootCA, addGarbageCollector,
		addNodeLifecycle, addTaintEviction, addPodGC,
	} {
		if err := add(m); err != nil {
			return err
		}
	}
	return nil
}

// client returns a typed client whose user agent names its user, so that `kontiki store log` and managedFields show which
// reconciler wrote something. There is no client-side rate limit: the number of workers bounds the load.
func (m *manager) client(name string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(m.restConfig(name))
	if err != nil {
		return nil, fmt.Errorf("controllers: client of %s: %w", name, err)
	}
	return client, nil
}

func (m *manager) restConfig(name string) *rest.Config {
	config := rest.CopyConfig(m.config.REST)
	config.UserAgent = name + "-controller/kontiki"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1
	return config
}

// add registers a reconciler. Its event handlers are attached before the informers start.
func (m *manager) add(name string, workers int, r Reconciler) *controller {
	c := newController(name, workers, r, m.config.Log)
	m.controllers = append(m.controllers, c)
	return c
}

func (m *manager) run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx))
	defer m.broadcaster.Shutdown()
	factories := []informers.SharedInformerFactory{m.shared, m.nodeLeases, m.rootCAs}
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
	m.config.Log.Info("controllers started", "count", len(m.controllers))
	var running sync.WaitGroup
	for _, c := range m.controllers {
		running.Go(func() { c.run(ctx) })
	}
	for _, loop := range m.background {
		running.Go(func() { loop(ctx) })
	}
	running.Wait()
	return nil
}

// dropManagedFields keeps caches small: no reconciler reads them, and they are often half of an object.
func dropManagedFields(obj any) (any, error) {
	if accessor, ok := obj.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

var _ cache.TransformFunc = dropManagedFields
