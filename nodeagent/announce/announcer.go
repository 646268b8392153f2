package announce

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"kontiki/internal/loadbalancer"
)

// repeats is how many periods a node goes on telling the network of an address that it has taken.
const repeats = 5

// Config of an Announcer.
type Config struct {
	Node      string // name of this node; required
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory // must not have started
	Events    record.EventRecorder            // nil tells nobody who announces what
	// Ready is closed when the rules are there by which this node serves what it announces; nil: they are.
	Ready <-chan struct{}
	Log   *slog.Logger // nil discards
}

// Announcer answers for the addresses that are this node's to announce. Run does all its work.
type Announcer struct {
	log     *slog.Logger
	events  record.EventRecorder
	node    string
	ready   <-chan struct{}
	wire    wire
	members members

	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	nodes    corelisters.NodeLister
	synced   []cache.InformerSynced
	wake     chan struct{} // holds one token while something may have changed

	held map[netip.Addr]*holding
	last string // error that was logged last
}

// holding is an address that this node has.
type holding struct {
	service *corev1.Service
	repeat  int // periods to go on telling
	// inherited: the agent before this one held it, and none that is proven to be alive is to have it.
	inherited bool
}

// wire is the network as an Announcer sees it.
type wire interface {
	hold(address netip.Addr, seconds int) error // for so long from now
	has(address netip.Addr) (bool, error)       // whether it is held
	drop(address netip.Addr) error              // also one that is not there
	tell(address netip.Addr) error              // everybody that it is here
	// isElsewhere asks whether another machine answers for it.
	isElsewhere(ctx context.Context, address netip.Addr) (bool, error)
}

// New prepares an Announcer.
func New(cfg Config) (*Announcer, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	services, slices, nodes := cfg.Informers.Core().V1().Services(), cfg.Informers.Discovery().V1().EndpointSlices(), cfg.Informers.Core().V1().Nodes()
	a := &Announcer{
		log: cfg.Log, events: cfg.Events, node: cfg.Node, ready: cfg.Ready, wire: kernel{}, members: members{self: cfg.Node, client: cfg.Client},
		services: services.Lister(), slices: slices.Lister(), nodes: nodes.Lister(),
		wake: make(chan struct{}, 1), held: map[netip.Addr]*holding{},
	}
	for _, informer := range []cache.SharedIndexInformer{services.Informer(), slices.Informer(), nodes.Informer()} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { a.changed() }, UpdateFunc: func(_, _ any) { a.changed() }, DeleteFunc: func(any) { a.changed() },
		})
		if err != nil {
			return nil, fmt.Errorf("announce: %w", err)
		}
		a.synced = append(a.synced, registration.HasSynced)
	}
	return a, nil
}

func (a *Announcer) changed() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run announces until ctx ends. Addresses stay then for lifetime, in case the agent is only being restarted.
func (a *Announcer) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), a.synced...) {
		return nil
	}
	if a.ready != nil {
		select {
		case <-a.ready:
		case <-ctx.Done():
			return nil
		}
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		a.report(a.step(ctx, true))
		for periodOver := false; !periodOver; {
			select {
			case <-ticker.C:
				periodOver = true
			case <-a.wake:
				a.report(a.step(ctx, len(a.members.seen) == 0)) // who is alive is known
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (a *Announcer) report(err error) {
	if err == nil {
		a.last = ""
	} else if text := err.Error(); text != a.last {
		a.last = text
		a.log.Warn("addresses of load balancers may not be announced", "err", err)
	}
}

// step takes, keeps and gives up addresses; renew has it renew and look who is alive before.
func (a *Announcer) step(ctx context.Context, renew bool) (err error) {
	wanted := a.addresses()
	if renew && len(wanted)+len(a.held) > 0 {
		err = a.members.refresh(ctx)
	}
	now := time.Now()
	if ctx.Err() != nil {
		return nil
	}
	for address := range a.held {
		if wanted[address] == nil {
			a.drop(address, "no Service has it any more")
		}
	}
	if err == nil && a.members.isConfident(now) && !a.members.isKnown(now) {
		err = a.inherit(wanted)
	}
	alive, proven := a.members.alive(now), a.members.proven(now)
	for address, service := range wanted {
		var failed error
		if a.members.isConfident(now) {
			among := alive
			if h := a.held[address]; h != nil && h.inherited {
				among = proven
				h.inherited = now.Sub(a.members.since) < deadAfter // then the dead are known
			}
			failed = a.settle(address, service, owner(address, a.candidates(service, among)), renew)
		} else if a.held[address] != nil && renew {
			failed = a.keepAlone(ctx, address)
		}
		if failed != nil {
			err = fmt.Errorf("address %s: %w", address, failed)
		}
	}
	return err
}

// addresses are those that are to be announced, each with its Service.
func (a *Announcer) addresses() map[netip.Addr]*corev1.Service {
	list, _ := a.services.List(labels.Everything()) // a lister over a cache does not fail
	out := map[netip.Addr]*corev1.Service{}
	for _, s := range list {
		for _, address := range loadbalancer.Announced(s) {
			out[address] = s
		}
	}
	return out
}

// candidates are the nodes that may announce a Service's addresses.
func (a *Announcer) candidates(s *corev1.Service, alive []string) (out []string) {
	list, _ := a.slices.EndpointSlices(s.Namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: s.Name}))
	with := eligible(s, list)
	for _, name := range alive {
		node, err := a.nodes.Get(name)
		if err != nil || with != nil && !with[name] {
			continue
		}
		if _, excluded := node.Labels[corev1.LabelNodeExcludeBalancers]; !excluded {
			out = append(out, name)
		}
	}
	return out
}

// inherit goes on with addresses that the kernel still has from the agent before this one: that was alive less than lifetime
// ago, and so this node is, for the others.
func (a *Announcer) inherit(wanted map[netip.Addr]*corev1.Service) (err error) {
	for address, service := range wanted {
		if a.held[address] != nil {
			continue
		}
		has, failed := a.wire.has(address)
		if failed != nil {
			err = fmt.Errorf("address %s: %w", address, failed)
		} else if has {
			a.held[address] = &holding{service: service, inherited: true}
			a.log.Info("address kept from before the start", "address", address, "service", service.Namespace+"/"+service.Name)
		}
	}
	return err
}

// settle has the node do what all agree on.
func (a *Announcer) settle(address netip.Addr, s *corev1.Service, owner string, renew bool) error {
	h := a.held[address]
	if owner != a.node {
		if h != nil {
			a.drop(address, "node "+owner+" has it")
		}
		return nil
	}
	if h != nil && !renew || h == nil && !a.members.isKnown(time.Now()) {
		return nil
	}
	if err := a.wire.hold(address, a.members.holdSeconds(time.Now())); err != nil {
		return err
	}
	if h == nil {
		h = &holding{repeat: repeats}
		a.held[address] = h
		a.log.Info("address announced", "address", address, "service", s.Namespace+"/"+s.Name)
		if a.events != nil {
			a.events.Eventf(s, corev1.EventTypeNormal, "AddressAnnounced", "Node %s answers for %s", a.node, address)
		}
	}
	h.service = s
	if h.repeat == 0 {
		return nil
	}
	h.repeat--
	return a.wire.tell(address)
}

// keepAlone keeps an address without knowing what the others do, unless one of them answers for it.
func (a *Announcer) keepAlone(ctx context.Context, address netip.Addr) error {
	elsewhere, err := a.wire.isElsewhere(ctx, address)
	if err != nil {
		return err // and the kernel takes it off
	}
	if elsewhere {
		a.drop(address, "another machine answers for it")
		return nil
	}
	return a.wire.hold(address, a.members.holdSeconds(time.Now()))
}

func (a *Announcer) drop(address netip.Addr, why string) {
	a.log.Info("address given up", "address", address, "reason", why)
	if err := a.wire.drop(address); err != nil {
		a.log.Warn("address not given up, the kernel will take it off", "address", address, "err", err)
	}
	delete(a.held, address)
}
