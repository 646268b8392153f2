package apiserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver/aggregation"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/raftstore"
	"kontiki/watch"
)

var apiServiceResource = apiregistrationv1.SchemeGroupVersion.WithResource("apiservices")

// apiServices follows the APIServices of the cluster, and keeps those of what this server has itself.
type apiServices struct {
	s *Server

	mu      sync.Mutex // guards present
	present map[string]*apiregistrationv1.APIService

	work chan struct{} // holds a token if those of this server are to be looked at
}

func newAPIServices(s *Server) *apiServices {
	return &apiServices{s: s, present: map[string]*apiregistrationv1.APIService{}, work: make(chan struct{}, 1)}
}

// tableChanged has the APIServices of custom resources looked at.
func (a *apiServices) tableChanged() {
	select {
	case a.work <- struct{}{}:
	default:
	}
}

// run keeps everything until ctx ends.
func (a *apiServices) run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { a.keepFollowing(ctx) })
	parts.Go(func() { a.keepLocal(ctx) })
	parts.Go(func() { a.followServices(ctx) })
	parts.Wait()
}

func (a *apiServices) keepFollowing(ctx context.Context) {
	for ctx.Err() == nil {
		if err := a.follow(ctx); err != nil && ctx.Err() == nil {
			a.s.log.Warn("APIServices could not be brought up to date", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followRetry):
		}
	}
}

// follow takes in the APIServices, and every change of them, until ctx ends or that fails.
func (a *apiServices) follow(ctx context.Context) error {
	store := a.s.storeOf(a.s.table.Lookup(apiServiceResource))
	all, revision, err := listAll[*apiregistrationv1.APIService](ctx, store)
	if err != nil {
		return err
	}
	present := map[string]*apiregistrationv1.APIService{}
	for _, one := range all {
		present[one.Name] = one
	}
	a.take(present)
	none := false
	watcher, err := store.Watch(ctx, storage.WatchOptions{ResourceVersion: revisionString(revision), SendInitialEvents: &none})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		events, err := watcher.Next(ctx)
		if err != nil {
			return err
		}
		next := maps.Clone(present)
		for _, event := range events {
			if event.Object == nil {
				continue // a bookmark
			}
			one, ok := event.Object.Object().(*apiregistrationv1.APIService)
			switch {
			case !ok:
			case event.Type == watch.Deleted:
				delete(next, one.Name)
			case event.Type == watch.Added || event.Type == watch.Modified:
				next[one.Name] = one
			}
		}
		present = next
		a.take(present)
	}
}

// take takes the APIServices into use. The map is not changed any more.
func (a *apiServices) take(present map[string]*apiregistrationv1.APIService) {
	a.mu.Lock()
	a.present = present
	a.mu.Unlock()
	var all []*apiregistrationv1.APIService
	for _, one := range present {
		all = append(all, one)
	}
	a.s.aggregated.Set(all)
	a.tableChanged()
}

func (a *apiServices) now() map[string]*apiregistrationv1.APIService {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.present
}

// localRetry is how often what could not be written is tried again, and missing ones are looked for.
const localRetry = 10 * time.Second

// keepLocal keeps the APIServices of what this server has itself, until ctx ends. All servers do so, without regard to each
// other: what another one has done already is left as it is.
func (a *apiServices) keepLocal(ctx context.Context) {
	starting := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.work:
		case <-time.After(localRetry):
		}
		if !a.s.booted.Load() || len(a.now()) == 0 {
			continue // bootstrap makes the first ones
		}
		if err := a.writeLocal(ctx, starting); err != nil {
			if ctx.Err() == nil {
				a.s.log.Warn("an APIService of this server could not be written", "err", err)
			}
			continue
		}
		starting = false
	}
}

// bootstrap writes those of built-in group versions before the server is ready.
func (a *apiServices) bootstrap(ctx context.Context) error {
	var objects []wanted
	for _, one := range aggregation.Local(a.s.table) {
		if !aggregation.Custom(one) {
			objects = append(objects, wanted{obj: one.DeepCopy()})
		}
	}
	return a.s.ensureAll(ctx, objects)
}

// writeLocal does what there is to do, at most bootstrapWriters at a time.
func (a *apiServices) writeLocal(ctx context.Context, starting bool) error {
	present := a.now()
	plan := aggregation.NewPlan(aggregation.Local(a.s.table), present, starting)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bootstrapWriters)
	for _, one := range plan.Create {
		group.Go(func() error { return a.create(ctx, one) })
	}
	for _, one := range plan.Update {
		group.Go(func() error { return a.rewrite(ctx, one) })
	}
	for _, one := range plan.Delete {
		group.Go(func() error { return a.remove(ctx, one) })
	}
	for _, one := range aggregation.Unsettled(present) {
		group.Go(func() error { return a.s.writeCondition(ctx, one, aggregation.LocalCondition()) })
	}
	return group.Wait()
}

// create makes an APIService. The table may be behind: it is not made for custom resources that have gone.
func (a *apiServices) create(ctx context.Context, one *apiregistrationv1.APIService) error {
	if aggregation.Custom(one) {
		if defined, err := a.defined(ctx, one); !defined || err != nil {
			return err
		}
	}
	return a.s.ensure(ctx, "", one.DeepCopy(), nil)
}

func (a *apiServices) rewrite(ctx context.Context, one *apiregistrationv1.APIService) error {
	t, err := a.s.targetOf(one, "")
	if err != nil {
		return err
	}
	_, err = a.s.change(ctx, t, change{uid: string(one.UID), options: writeOptions{manager: bootstrapManager}, next: func(_ context.Context, live runtime.Object) (runtime.Object, error) {
		next := live.DeepCopyObject().(*apiregistrationv1.APIService)
		next.Spec = one.Spec
		return a.s.track(t, live, next, bootstrapManager)
	}})
	return orGone(err)
}

// remove deletes an APIService whose group version this server does not have, if no definition has it either that this server
// has not heard of yet.
func (a *apiServices) remove(ctx context.Context, one *apiregistrationv1.APIService) error {
	if aggregation.Custom(one) {
		if defined, err := a.defined(ctx, one); defined || err != nil {
			return err
		}
	}
	t, err := a.s.targetOf(one, "")
	if err != nil {
		return err
	}
	uid := types.UID(one.UID)
	_, err = a.s.delete(ctx, t, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, nil)
	return orGone(err)
}

// orGone forgives a write that came too late.
func orGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// defined says whether a definition serves the group version of an APIService, as of now.
func (a *apiServices) defined(ctx context.Context, one *apiregistrationv1.APIService) (bool, error) {
	list, err := a.s.storeOf(a.s.table.Lookup(customResourceDefinitions)).List(ctx, storage.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, item := range list.Items {
		if !strings.HasSuffix(item.Key, "."+one.Spec.Group) {
			continue // the name of a definition ends in its group: the others need not be read
		}
		obj, err := item.Peek()
		if err != nil {
			continue
		}
		for _, v := range obj.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions {
			if v.Served && v.Name == one.Spec.Version && obj.(*apiextensionsv1.CustomResourceDefinition).Spec.Group == one.Spec.Group {
				return true, nil
			}
		}
	}
	return false, nil
}

// servicesPoll is how often it is looked whether there is any backend whose Service is to be followed.
const servicesPoll = time.Second

// followServices has backends checked when their Services or endpoints change, until ctx ends. Without a backend nothing is
// followed.
func (a *apiServices) followServices(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(servicesPoll):
		}
		if a.s.aggregated.Empty() {
			continue
		}
		inner, cancel := context.WithCancel(ctx)
		var parts sync.WaitGroup
		parts.Go(func() { a.followOne(inner, cancel, a.s.table.Lookup(serviceResource)) })
		parts.Go(func() {
			a.followOne(inner, cancel, a.s.table.Lookup(discoveryv1.SchemeGroupVersion.WithResource("endpointslices")))
		})
		parts.Wait()
		cancel()
	}
}

// followOne follows one kind of object until that fails, the other one has, or there is no backend any more.
func (a *apiServices) followOne(ctx context.Context, failed context.CancelFunc, row *registry.Resource) {
	defer failed()
	store := a.s.storeOf(row)
	list, err := store.List(ctx, storage.ListOptions{Limit: 1})
	if err != nil {
		return
	}
	none := false
	watcher, err := store.Watch(ctx, storage.WatchOptions{ResourceVersion: revisionString(list.Revision), SendInitialEvents: &none})
	if err != nil {
		return
	}
	defer watcher.Stop()
	a.s.aggregated.CheckAll() // what has changed before is not among the events
	for !a.s.aggregated.Empty() {
		events, err := watcher.Next(ctx)
		if err != nil {
			return
		}
		for _, event := range events {
			if event.Object == nil {
				continue
			}
			m := accessor(event.Object.Object())
			name := m.GetName()
			if row.Group != "" {
				name = m.GetLabels()[discoveryv1.LabelServiceName]
			}
			a.s.aggregated.Changed(m.GetNamespace(), name)
		}
	}
}

// reportAPIService is told what a check has found, and writes it if that is news and this server's to tell.
func (s *Server) reportAPIService(ctx context.Context, name string, found apiregistrationv1.APIServiceCondition) {
	one := s.apiServices.now()[name]
	if one == nil || !aggregation.Apply(one.DeepCopy(), found) {
		return
	}
	may, err := s.mayReport(ctx)
	if may && err == nil {
		err = s.writeCondition(raftstore.WithOrigin(ctx, ownOrigin), one, found)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the availability of an APIService could not be written", "apiservice", name, "err", err)
	}
}

// mayReport says whether this server is the one that writes what it finds about aggregated servers: of those that live
// (serverlease.go) the first by name. Another one may have another way to a server, and they would write against each other.
func (s *Server) mayReport(ctx context.Context) (bool, error) {
	leases, err := s.serverLeases(ctx)
	if err != nil || len(leases) == 0 {
		return err == nil, err // a server that nobody else can reach is alone
	}
	first := slices.MinFunc(leases, func(a, b *coordinationv1.Lease) int { return strings.Compare(a.Name, b.Name) })
	return first.Name == leaseName(s.place()), nil
}

// writeCondition writes a condition into the status of an APIService, unless it is there.
func (s *Server) writeCondition(ctx context.Context, one *apiregistrationv1.APIService, c apiregistrationv1.APIServiceCondition) error {
	if !aggregation.Apply(one.DeepCopy(), c) {
		return nil
	}
	t, err := s.targetOf(one, "")
	if err != nil {
		return err
	}
	t.sub = t.resource.Subresource("status")
	_, err = s.change(ctx, t, change{uid: string(one.UID), options: writeOptions{manager: bootstrapManager}, next: func(_ context.Context, live runtime.Object) (runtime.Object, error) {
		next := live.DeepCopyObject().(*apiregistrationv1.APIService)
		aggregation.Apply(next, c)
		return s.track(t, live, next, bootstrapManager)
	}})
	return orGone(err)
}
