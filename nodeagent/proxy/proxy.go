package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/knftables"

	"kontiki/nodeagent/nftables"
)

// defaultTable is the name of the tables unless Config has another.
const defaultTable = "kontiki-services"

// byService is the name of the index that the package adds to the informer of slices.
const byService = "proxy/service"

// Config says for whom and where a proxy works.
type Config struct {
	// Node is the name of the own Node: endpoints on it are local.
	Node string
	// ServiceCIDRs are the ranges of cluster IPs, one for each family; PodCIDRs those of the cluster's pods.
	ServiceCIDRs, PodCIDRs []netip.Prefix
	// Table is the name of the nftables tables that the proxy owns. Default "kontiki-services".
	Table string
	// Informers are read for Services, EndpointSlices and the own Node. They must not have started.
	Informers informers.SharedInformerFactory
	// Log gets what goes wrong.
	Log *slog.Logger
}

// Proxy keeps the rules of a node. Run does all its work.
type Proxy struct {
	cfg      Config
	log      *slog.Logger
	tables   []*table
	services cache.Indexer
	slices   cache.Indexer
	nodes    cache.Indexer
	synced   []cache.InformerSynced
	pending  pending
	health   *healthChecks
	written  chan struct{} // closed when the kernel has had all rules

	// Of Run alone.
	retry  nftables.Retry
	at     here
	flows  map[string][]flow           // UDP frontends by service
	stale  map[flowKey]flow            // of those that changed since flows were forgotten
	checks map[string]check            // health checks by service
	told   map[nftables.Element]string // elements that several Services claim, and the last that goes without
}

// New prepares a proxy. The error wraps ErrConfig. Where the machine has no nft, rules are tried until it has.
func New(cfg Config) (*Proxy, error) {
	if cfg.Table == "" {
		cfg.Table = defaultTable
	}
	if len(cfg.ServiceCIDRs) == 0 || cfg.Node == "" {
		return nil, fmt.Errorf("%w: node and service ranges are required", ErrConfig)
	}
	p := &Proxy{
		cfg: cfg, log: cfg.Log.With("component", "proxy"), at: here{node: cfg.Node}, pending: newPending(), health: newHealthChecks(cfg.Log), written: make(chan struct{}),
		flows: map[string][]flow{}, stale: map[flowKey]flow{}, checks: map[string]check{}, told: map[nftables.Element]string{},
	}
	for _, f := range families(cfg.ServiceCIDRs, cfg.PodCIDRs) {
		p.tables = append(p.tables, newTable(f, cfg.Table))
	}
	return p, p.follow(cfg.Informers)
}

// follow has changes of what rules follow from arrive in pending.
func (p *Proxy) follow(factory informers.SharedInformerFactory) error {
	services := factory.Core().V1().Services().Informer()
	nodes := factory.Core().V1().Nodes().Informer()
	endpoints := factory.Discovery().V1().EndpointSlices().Informer()
	if err := endpoints.AddIndexers(cache.Indexers{byService: func(obj any) ([]string, error) {
		return []string{serviceOf(obj.(metav1.Object))}, nil
	}}); err != nil {
		return fmt.Errorf("proxy: index of EndpointSlices: %w", err)
	}
	p.services, p.slices, p.nodes = services.GetIndexer(), endpoints.GetIndexer(), nodes.GetIndexer()
	for informer, keyOf := range map[cache.SharedIndexInformer]func(metav1.Object) string{
		services:  func(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() },
		endpoints: serviceOf,
		nodes:     p.ownNode,
	} {
		registration, err := informer.AddEventHandler(p.pending.handler(keyOf))
		if err != nil {
			return fmt.Errorf("proxy: %w", err)
		}
		p.synced = append(p.synced, registration.HasSynced)
	}
	return nil
}

// serviceOf is the key of the Service that a slice belongs to; noService for those that carry something else, or that are not
// this proxy's business.
func serviceOf(slice metav1.Object) string {
	if slice.GetLabels()[discoveryv1.LabelServiceName] == "" || ofOthers(slice) {
		return noService
	}
	return slice.GetNamespace() + "/" + slice.GetLabels()[discoveryv1.LabelServiceName]
}

// Keys that stand for no Service: for every one, and for the tables themselves, of which somebody may have taken the rules.
const (
	allServices = ""
	rulesLost   = "!"
)

// ownNode returns allServices for the own Node, whose labels decide which endpoints are near.
func (p *Proxy) ownNode(o metav1.Object) string {
	if o.GetName() == p.cfg.Node {
		return allServices
	}
	return noService
}

// Run keeps the rules until ctx ends. They stay then: nodes keep working without their agent.
func (p *Proxy) Run(ctx context.Context) error {
	defer p.health.close()
	if !cache.WaitForCacheSync(ctx.Done(), p.synced...) {
		return nil
	}
	watcher := nftables.NewWatcher(preroutingChain, p.cfg.Table)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { watcher.Run(ctx, func() { p.pending.add(rulesLost) }) })
	p.pending.add(allServices)
	for {
		keys, ok := p.pending.take(ctx)
		if !ok {
			return nil
		}
		if err := p.sync(ctx, keys); err != nil && ctx.Err() == nil {
			delay, isNew := p.retry.Failed(err)
			if isNew {
				p.log.Error("rules of Services could not be written, they will be tried again", "err", err)
			}
			p.pending.addAfter(ctx, delay, keys)
		} else if p.retry.Succeeded() {
			p.log.Info("rules of Services are written again")
		}
	}
}

// Written is closed when the kernel has had the rules of all Services for the first time: until then the node may serve none.
func (p *Proxy) Written() <-chan struct{} { return p.written }

// Remove takes away all rules of both families from the tables of the default name, while no proxy runs. The error wraps
// nftables.ErrUnavailable where there is no nft.
func Remove(ctx context.Context) (err error) {
	for _, f := range []family{{family: knftables.IPv4Family}, {family: knftables.IPv6Family}} {
		err = errors.Join(err, newTable(f, defaultTable).Remove(ctx))
	}
	return err
}

// sync computes the rules of the Services that changed, and has the kernel follow.
func (p *Proxy) sync(ctx context.Context, keys []string) error {
	began := time.Now()
	if slices.Contains(keys, rulesLost) {
		keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == rulesLost })
		p.verify(ctx)
	}
	if slices.Contains(keys, allServices) {
		p.readNode()
		keys = p.everyService()
	}
	changes := make([]map[string]*nftables.Ruleset, len(p.tables))
	for i := range changes {
		changes[i] = make(map[string]*nftables.Ruleset, len(keys))
	}
	for _, key := range keys {
		for _, f := range p.flows[key] {
			p.stale[f.flowKey] = flow{flowKey: f.flowKey} // without endpoints, unless it still has some
		}
		for i, rules := range p.compute(key) {
			changes[i][key] = rules
		}
		for _, f := range p.flows[key] {
			p.stale[f.flowKey] = f
		}
	}
	for i, t := range p.tables {
		if err := t.Apply(ctx, changes[i]); err != nil {
			return fmt.Errorf("proxy: %s: %w", t.family.word, err)
		}
		p.tellLosers(t, keys)
	}
	p.setChecks()
	if err := forgetFlows(p.stale); err != nil {
		return err
	}
	clear(p.stale)
	select {
	case <-p.written:
	default:
		close(p.written)
	}
	p.log.Debug("rules written", "services", len(keys), "took", time.Since(began))
	return nil
}

// verify finds out which tables have to be written anew. UDP flows that began without them are to be forgotten.
func (p *Proxy) verify(ctx context.Context) {
	for _, t := range p.tables {
		if !t.Verify(ctx, preroutingChain) {
			continue
		}
		p.log.Warn("somebody has taken the rules of Services away, they are written anew", "family", t.family.word)
		for _, flows := range p.flows {
			for _, f := range flows {
				p.stale[f.flowKey] = f
			}
		}
	}
}

// readNode finds out where the proxy is.
func (p *Proxy) readNode() {
	if obj, exists, _ := p.nodes.GetByKey(p.cfg.Node); exists {
		p.at.zone = obj.(*corev1.Node).Labels[corev1.LabelTopologyZone]
	}
}

// everyService lists the Services that are there, and those that had rules.
func (p *Proxy) everyService() []string {
	keys := p.services.ListKeys()
	for _, t := range p.tables {
		keys = append(keys, t.Owners()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// compute makes the rules of one Service, a part for each table; nil where it has none.
func (p *Proxy) compute(key string) []*nftables.Ruleset {
	parts := make([]*nftables.Ruleset, len(p.tables))
	delete(p.flows, key)
	delete(p.checks, key)
	obj, exists, _ := p.services.GetByKey(key)
	if !exists || !handled(obj.(*corev1.Service)) {
		return parts
	}
	service, ofService := obj.(*corev1.Service), p.slicesOf(key)
	here := map[netip.Addr]bool{} // an endpoint counts once for a health check, however many ports it has
	for i, t := range p.tables {
		rules := newRuleset()
		for _, port := range service.Spec.Ports {
			f, ok := frontendOf(service, port, t.family.isIPv6)
			if !ok {
				continue
			}
			all := endpointsOf(ofService, port, t.family.isIPv6, p.at)
			rules.add(&f, all, p.at, t.family)
			if port.Protocol == corev1.ProtocolUDP {
				p.flows[key] = append(p.flows[key], flowsOf(&f, all)...)
			}
			for _, e := range all {
				here[e.address.Addr()] = here[e.address.Addr()] || e.local && e.ready
			}
		}
		parts[i] = rules.Ruleset
	}
	p.noteCheck(key, service, here)
	return parts
}

func (p *Proxy) slicesOf(key string) []*discoveryv1.EndpointSlice {
	objects, _ := p.slices.ByIndex(byService, key)
	out := make([]*discoveryv1.EndpointSlice, len(objects))
	for i, obj := range objects {
		out[i] = obj.(*discoveryv1.EndpointSlice)
	}
	return out
}

// tellLosers logs which Services go without an address and port, now that these have changed: once, and not with every
// change of anything.
func (p *Proxy) tellLosers(t *table, keys []string) {
	for _, key := range keys {
		for e, losers := range t.Losers(key) {
			if last := losers[len(losers)-1]; p.told[e] != last {
				p.told[e] = last
				p.log.Warn("another Service has this address and port", "services", losers, "what", e.Key)
			}
		}
	}
}
