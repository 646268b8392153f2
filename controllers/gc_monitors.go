package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/apiclient"
)

const (
	// discoveryPeriod is how often the garbage collector looks for new and vanished resources (CRDs come and go).
	discoveryPeriod = 10 * time.Second
	// discoveryRetry applies until the first discovery has succeeded.
	discoveryRetry = 200 * time.Millisecond
	// monitorSyncPoll is how soon a request is served again that came before all monitors had their first list.
	monitorSyncPoll = 100 * time.Millisecond
	// syncPatience is how long a resource may take to be listed before the others go on without it.
	syncPatience = 30 * time.Second
)

// Events are many, short-lived and own nothing.
var unmonitored = map[string]bool{"events": true}

// monitors watch the metadata of every resource that can be deleted, and draw the ownerGraph. The set follows discovery.
type monitors struct {
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
	graph     *ownerGraph
	// look is told which uids to reconcile.
	look func(...Request)
	// gone is told of each object that is deleted, of whichever resource. Nil until somebody wants to know.
	gone func(resource schema.GroupResource, namespace string)
	log  *slog.Logger

	mu      sync.Mutex // guards the rest; never held while calling the API or the graph
	running map[schema.GroupVersionResource]*monitor
	kinds   map[schema.GroupKind]resource
	started bool // the first discovery is done
}

type monitor struct {
	synced  cache.InformerSynced
	stop    context.CancelFunc
	started time.Time
}

func addGarbageCollector(m *manager) error {
	client, err := m.client("garbage-collector")
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(m.restConfig("garbage-collector"))
	if err != nil {
		return fmt.Errorf("controllers: metadata client: %w", err)
	}
	mon := &monitors{
		discovery: client.Discovery(), metadata: meta, graph: newOwnerGraph(), log: m.config.Log,
		running: map[schema.GroupVersionResource]*monitor{}, kinds: map[schema.GroupKind]resource{},
	}
	c := m.add("garbage-collector", 10, &garbageCollector{metadata: meta, graph: mon.graph, monitors: mon, recorder: m.recorder("garbage-collector")})
	mon.look = c.enqueue
	m.monitors = mon
	m.background = append(m.background, mon.run)
	return nil
}

// run follows discovery until ctx ends, and then waits for all informers to stop.
func (m *monitors) run(ctx context.Context) {
	var informers sync.WaitGroup
	defer informers.Wait()
	for {
		wait := discoveryPeriod
		if err := m.refresh(ctx, &informers); err != nil {
			m.log.Warn("discovery for garbage collection", "err", err)
			if !m.discovered() {
				wait = discoveryRetry
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// refresh starts monitors of new resources and stops those of vanished ones. After an incomplete discovery nothing is
// stopped: the missing group may only be unreachable.
func (m *monitors) refresh(ctx context.Context, informers *sync.WaitGroup) error {
	resources, err := deletableResources(m.discovery, false)
	kinds, wanted := map[schema.GroupKind]resource{}, map[schema.GroupVersionResource]bool{}
	for _, res := range resources {
		kinds[schema.GroupKind{Group: res.gvr.Group, Kind: res.kind}] = res
		if unmonitored[res.gvr.Resource] || !res.verbs.Has("watch") {
			continue
		}
		wanted[res.gvr] = true
		m.start(ctx, res, informers)
	}
	if err != nil {
		m.addKinds(kinds)
		return err
	}
	for _, gvr := range m.stopUnwanted(wanted, kinds) {
		m.enqueue(m.graph.forgetResource(gvr))
	}
	return nil
}

func (m *monitors) addKinds(kinds map[schema.GroupKind]resource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.kinds, kinds)
}

func (m *monitors) stopUnwanted(
	wanted map[schema.GroupVersionResource]bool, kinds map[schema.GroupKind]resource,
) (stopped []schema.GroupVersionResource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started, m.kinds = true, kinds
	for gvr, mon := range m.running {
		if !wanted[gvr] {
			mon.stop()
			delete(m.running, gvr)
			stopped = append(stopped, gvr)
		}
	}
	return stopped
}

func (m *monitors) discovered() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started
}

// start is a no-op for a resource that is monitored already.
func (m *monitors) start(ctx context.Context, res resource, informers *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[res.gvr] != nil {
		return
	}
	seen := func(obj any) {
		if meta, ok := apiclient.LastKnown[*metav1.PartialObjectMetadata](obj); ok {
			m.enqueue(m.graph.observe(nodeFor(res, meta)))
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(before, after any) {
			if b, ok := before.(*metav1.PartialObjectMetadata); ok && b.UID != after.(*metav1.PartialObjectMetadata).UID {
				m.enqueue(m.graph.forget(b.UID)) // deleted and made anew between two events
			}
			seen(after)
		},
		DeleteFunc: func(obj any) {
			if meta, ok := apiclient.LastKnown[*metav1.PartialObjectMetadata](obj); ok {
				m.enqueue(m.graph.forget(meta.UID))
				if m.gone != nil {
					m.gone(res.gvr.GroupResource(), meta.Namespace)
				}
			}
		},
	}
	informer := m.informer(res.gvr, handler)
	ctx, stop := context.WithCancel(ctx)
	m.running[res.gvr] = &monitor{synced: informer.HasSynced, stop: stop, started: time.Now()}
	informers.Go(func() { informer.RunWithContext(ctx) })
}

// informer of the metadata of a resource, which nobody shares: a shared one costs 30 KB more, and there is one for every
// kind.
func (m *monitors) informer(gvr schema.GroupVersionResource, handler cache.ResourceEventHandler) cache.Controller {
	objects := m.metadata.Resource(gvr)
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return objects.Watch(ctx, o)
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(lists, m.metadata),
		ObjectType:    &metav1.PartialObjectMetadata{},
		Handler:       handler,
		Transform:     onlyOwnership,
	})
	return informer
}

func nodeFor(res resource, meta *metav1.PartialObjectMetadata) *graphNode {
	return &graphNode{
		uid: meta.UID, resource: res, apiVersion: res.gvr.GroupVersion().String(), namespace: meta.Namespace, name: meta.Name,
		owners: meta.OwnerReferences, finalizers: meta.Finalizers, deleting: meta.DeletionTimestamp != nil,
	}
}

// onlyOwnership drops what the graph does not need: labels and annotations of everything are a lot of memory.
func onlyOwnership(obj any) (any, error) {
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		meta.Labels, meta.Annotations, meta.ManagedFields = nil, nil, nil
	}
	return obj, nil
}

func (m *monitors) enqueue(uids []types.UID) {
	for _, uid := range uids {
		m.look(named(string(uid)))
	}
}

// ready says whether everything that exists has been seen once. Before that, dependents could be overlooked: an owner that is
// to orphan them would be let go, and they would be deleted. A resource that cannot be listed (a broken webhook, an API
// that is down) holds up the others for syncPatience only.
func (m *monitors) ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mon := range m.running {
		if !mon.synced() && time.Since(mon.started) < syncPatience {
			return false
		}
	}
	return m.started
}

// lookup finds the resource of a kind, watched or not.
func (m *monitors) lookup(kind schema.GroupKind) (resource, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	res, ok := m.kinds[kind]
	return res, ok
}

// servedAs finds the version in which a namespaced resource is served.
func (m *monitors) servedAs(resource schema.GroupResource) (schema.GroupVersionResource, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, res := range m.kinds {
		if res.namespaced && res.gvr.GroupResource() == resource {
			return res.gvr, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// groupOf cuts the version from an apiVersion.
func groupOf(apiVersion string) string {
	return schema.FromAPIVersionAndKind(apiVersion, "").Group
}
