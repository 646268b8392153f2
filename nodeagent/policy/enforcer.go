package policy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/knftables"

	"kontiki/internal/policypeers"
	"kontiki/nodeagent/nftables"
)

// listDelay is how long after a failure the pods that run are listed again.
const listDelay = time.Second

// byUID is the name of the index that the package adds to the informers of pods and policies.
const byUID = "policy/uid"

// Config says for whom an Enforcer works.
type Config struct {
	// Pods is the informer of the node's own pods, Informers of everything else. They must not have started.
	Pods      cache.SharedIndexInformer
	Informers informers.SharedInformerFactory
	// Running returns the addresses of the pods of this node in which containers have been started already. It is asked at the
	// start of Run, until it answers.
	Running func(context.Context) (map[types.UID][]netip.Addr, error)
	// Report is told, by Run, when rules cannot be written, and with nil when they are again; the error wraps
	// nftables.ErrUnavailable where there is no nft. It must not block. May be nil.
	Report func(error)
	// Log gets what goes wrong.
	Log *slog.Logger
}

// Enforcer keeps the rules of a node. Run does all its work.
type Enforcer struct {
	cfg       Config
	log       *slog.Logger
	table     *nftables.Table
	addresses *addresses
	pending   *pending

	pods, policies, slices cache.Indexer
	synced                 []cache.InformerSynced

	// Of Run alone.
	retry     nftables.Retry
	bindings  map[types.UID]binding         // of the pods that policies select
	bound     map[string]map[types.UID]bool // the pods that each policy selects
	selectors selectors
}

// New prepares an enforcer. Where the machine has no nft that works, rules are tried until it has.
func New(cfg Config) (*Enforcer, error) {
	e := newEnforcer(cfg, openTable())
	return e, e.follow()
}

func openTable() *nftables.Table { return nftables.Open(knftables.InetFamily, tableName, writeBase) }

func newEnforcer(cfg Config, table *nftables.Table) *Enforcer {
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	return &Enforcer{
		cfg: cfg, log: cfg.Log.With("component", "network-policy"), table: table, addresses: newAddresses(), pending: newPending(),
		bindings: map[types.UID]binding{}, bound: map[string]map[types.UID]bool{}, selectors: selectors{},
	}
}

// Remove takes away all rules, while no enforcer runs. The error wraps nftables.ErrUnavailable where there is no nft.
func Remove(ctx context.Context) error { return openTable().Remove(ctx) }

// follow has changes of what rules follow from arrive in pending.
func (e *Enforcer) follow() error {
	policies := e.cfg.Informers.Networking().V1().NetworkPolicies().Informer()
	slices := e.cfg.Informers.Discovery().V1().EndpointSlices().Informer()
	e.pods, e.policies, e.slices = e.cfg.Pods.GetIndexer(), policies.GetIndexer(), slices.GetIndexer()
	for informer, indexes := range map[cache.SharedIndexInformer]cache.Indexers{
		e.cfg.Pods: {byUID: indexByUID}, policies: {byUID: indexByUID}, slices: {policypeers.ByPolicy: policypeers.IndexByPolicy},
	} {
		if err := informer.AddIndexers(indexes); err != nil {
			return fmt.Errorf("policy: index: %w", err)
		}
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		e.cfg.Pods: e.handler(func(b *batch, o metav1.Object) { b.pods[o.GetUID()] = true }, func(before, after metav1.Object) bool {
			return before.GetUID() != after.GetUID() || !maps.Equal(before.GetLabels(), after.GetLabels())
		}),
		policies: e.handler(func(b *batch, o metav1.Object) { b.policies[keyOf(o)] = true }, func(before, after metav1.Object) bool {
			return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration()
		}),
		slices: e.handler(func(b *batch, o metav1.Object) {
			if uid := policypeers.PolicyOf(o); uid != "" {
				b.peers[uid] = true
			}
		}, func(_, _ metav1.Object) bool { return true }),
	} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("policy: %w", err)
		}
		e.synced = append(e.synced, registration.HasSynced)
	}
	return nil
}

func indexByUID(obj any) ([]string, error) {
	return []string{string(obj.(metav1.Object).GetUID())}, nil
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// handler notes objects that come, go, or change in a way that matters; of one that was replaced both.
func (e *Enforcer) handler(note func(*batch, metav1.Object), matters func(before, after metav1.Object) bool) cache.ResourceEventHandler {
	add := func(objects ...any) {
		e.pending.add(func(b *batch) {
			for _, obj := range objects {
				if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = gone.Obj
				}
				if o, ok := obj.(metav1.Object); ok {
					note(b, o)
				}
			}
		})
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { add(obj) },
		UpdateFunc: func(before, after any) {
			if matters(before.(metav1.Object), after.(metav1.Object)) {
				add(before, after)
			}
		},
		DeleteFunc: func(obj any) { add(obj) },
	}
}

// Protect returns when the kernel has the rules of a pod at these addresses, before its first container starts. Once it has
// them, it costs nothing to ask again. A pod that no policy selects starts without them, too: what it may, it may anyway. The
// error wraps ErrNotWritten, or is the context's.
func (e *Enforcer) Protect(ctx context.Context, uid types.UID, addresses []netip.Addr) error {
	changed := e.addresses.give(uid, addresses)
	if len(changed) == 0 {
		return nil
	}
	done := make(chan error, 1)
	e.pending.add(func(b *batch) {
		for _, uid := range changed {
			b.pods[uid] = true
		}
		b.waiters = append(b.waiters, waiter{uid, done})
	})
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotWritten, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forget drops a pod of which nothing is left.
func (e *Enforcer) Forget(uid types.UID) {
	e.addresses.drop(uid)
	e.pending.add(func(b *batch) { b.pods[uid] = true })
}

// Run keeps the rules until ctx ends. They stay then.
func (e *Enforcer) Run(ctx context.Context) error {
	watcher := nftables.NewWatcher(forwardChain, tableName)
	e.readRunning(ctx)
	e.runClosed(ctx)
	e.pending.add(func(b *batch) { b.all = true }) // before all else: the first transaction replaces what is there
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { watcher.Run(ctx, func() { e.pending.add(func(b *batch) { b.verify = true }) }) })
	for {
		b := e.pending.take(ctx, nil)
		if b == nil {
			return nil
		}
		err := e.sync(ctx, b)
		b.answer(func(uid types.UID) error {
			if e.isFree(uid) {
				return nil
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			e.pending.putBack(b, e.failed(err)) // a pod that starts meanwhile has it tried at once
		} else if e.retry.Succeeded() {
			e.log.Info("NetworkPolicies are enforced again")
			e.cfg.Report(nil)
		}
	}
}

// failed tells of an error, and says how long to wait for the next try.
func (e *Enforcer) failed(err error) (delay time.Duration) {
	delay, isNew := e.retry.Failed(err)
	if isNew {
		e.log.Error("rules of NetworkPolicies could not be written, they will be tried again", "err", err)
		e.cfg.Report(err)
	}
	return delay
}

// isFree says whether no policy selects a pod that is known.
func (e *Enforcer) isFree(uid types.UID) bool { return e.pod(uid) != nil && len(e.bindings[uid]) == 0 }

// readRunning learns which pods have rules from before.
func (e *Enforcer) readRunning(ctx context.Context) {
	for ctx.Err() == nil {
		running, err := e.cfg.Running(ctx)
		if err == nil {
			for uid, addresses := range running {
				e.addresses.give(uid, addresses)
				e.addresses.setWritten(uid, addresses)
			}
			return
		}
		e.log.Warn("the pods that run could not be listed, they will be again", "err", err)
		wait(ctx, listDelay)
	}
}

// runClosed closes new pods until policies are known. Rules that are there from before stay as they are.
func (e *Enforcer) runClosed(ctx context.Context) {
	known := make(chan struct{})
	go func() { // ends with ctx
		defer close(known)
		cache.WaitForCacheSync(ctx.Done(), e.synced...)
	}()
	for {
		b := e.pending.take(ctx, known)
		if b == nil {
			return
		}
		err := e.closeNew(ctx, b)
		b.answer(func(types.UID) error { return err }) // who may what is not known
		if err != nil && ctx.Err() == nil {
			e.failed(err)
		}
	}
}

// closeNew closes the pods of a batch that somebody waits for.
func (e *Enforcer) closeNew(ctx context.Context, b *batch) error {
	if len(b.waiters) == 0 {
		return nil
	}
	closing := nftables.NewRuleset()
	given := map[types.UID][]netip.Addr{}
	for uid := range b.pods {
		if given[uid] = e.addresses.unwritten(uid); len(given[uid]) > 0 {
			closing.Merge(closed(given[uid]))
		}
	}
	if err := e.table.Amend(ctx, closing); err != nil {
		return err
	}
	for uid, addresses := range given {
		e.addresses.setWritten(uid, addresses)
	}
	return nil
}

func wait(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// policyAt is the policy of a key, nil if there is none.
func (e *Enforcer) policyAt(key string) *networkingv1.NetworkPolicy {
	obj, exists, _ := e.policies.GetByKey(key)
	if !exists {
		return nil
	}
	return obj.(*networkingv1.NetworkPolicy)
}
