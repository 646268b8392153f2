package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/raftstore"
)

// systemNamespaces exist in every cluster, before anything else does.
var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespaceDefault, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// bootstrapManager owns the fields of the objects that the server itself writes.
const bootstrapManager = "kontiki-apiserver"

// ownOrigin is who the raft log shows for what the server itself writes.
var ownOrigin = raftstore.Origin{User: "system:apiserver", UserAgent: bootstrapManager}

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
				s.log.Warn("bootstrap objects could not be written", "err", err)
			}
		} else {
			s.booted.Store(true)
			s.owners.WarmUp()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (s *Server) bootstrap(ctx context.Context) error {
	var namespaces []wanted
	for _, name := range systemNamespaces {
		namespaces = append(namespaces, wanted{obj: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}})
	}
	objects := slices.Concat(defaultPolicy(), defaultFlows())
	for _, class := range registry.SystemPriorityClasses() {
		objects = append(objects, wanted{obj: class})
	}
	if err := s.ensureAll(ctx, namespaces); err != nil {
		return err
	}
	if err := s.ensureAll(ctx, objects); err != nil {
		return err
	}
	if _, err := s.loadPolicy(ctx); err != nil {
		return err
	}
	if err := s.apiServices.bootstrap(ctx); err != nil {
		return err
	}
	if err := s.bootstrapDangling(ctx); err != nil {
		return err
	}
	if err := s.bootstrapTrust(ctx); err != nil {
		return err
	}
	return s.bootstrapKubernetesService(ctx)
}

// wanted is an object that every cluster has. If it is there, fit, which may be nil, brings it up to date.
type wanted struct {
	obj runtime.Object
	fit func(present runtime.Object)
}

// bootstrapWriters is how many objects are written at a time: the store packs writes that wait for each other into one.
const bootstrapWriters = 32

// ensureAll ensures objects in no particular order.
func (s *Server) ensureAll(ctx context.Context, objects []wanted) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bootstrapWriters)
	for _, w := range objects {
		group.Go(func() error {
			m := accessor(w.obj)
			if err := s.ensure(ctx, m.GetNamespace(), w.obj, w.fit); err != nil {
				return fmt.Errorf("%T %s: %w", w.obj, m.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// ensure creates obj if it is not there. If it is, fit, which may be nil, brings it up to date. It looks at what this server has
// at hand: some hundred consistent reads every bootstrapPeriod on each server kept the leader busy. That may be old, but what is written
// is judged by the store, and what was overlooked is seen the next time.
func (s *Server) ensure(ctx context.Context, namespace string, obj runtime.Object, fit func(present runtime.Object)) error {
	t, err := s.targetOf(obj, namespace)
	if err != nil {
		return err
	}
	present, err := t.store.Get(ctx, namespace, t.name, storage.GetOptions{ResourceVersion: "0"})
	options := writeOptions{manager: bootstrapManager}
	if errors.Is(err, storage.ErrNotFound) {
		t.resource.Default(obj)
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
