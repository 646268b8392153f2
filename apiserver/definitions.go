package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/customresources"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/watch"
)

var customResourceDefinitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// definitions keeps the rows of custom resources in the table as the definitions of the cluster say.
type definitions struct {
	s       *Server
	arrival arrival

	mu      sync.Mutex             // guards what follows; the table's mutex is taken after it
	known   map[string]*definition // by name
	reached int64                  // every change up to this revision has been taken in
	retired []retired
	work    map[string]bool // names of definitions that the finisher has to look at
	wake    chan struct{}   // holds a token if there is work
}

// definition is one of them, as the table has it.
type definition struct {
	revision    int64
	fingerprint [sha256.Size]byte // of what its rows are made from
	group       string
	rows        customresources.Rows
	gone        chan struct{}
	waits       bool // for a name that another one has
	ending      *atomic.Bool
}

// retired rows are of no use once the requests that found them are over.
type retired struct {
	name string // of the definition
	rows []*registry.Resource
	at   time.Time
}

func newDefinitions(s *Server) *definitions {
	return &definitions{s: s, known: map[string]*definition{}, work: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// follow takes in the definitions, and every change of them, until ctx ends or that fails.
func (d *definitions) follow(ctx context.Context) error {
	store := d.s.storeOf(d.s.table.Lookup(customResourceDefinitions))
	list, err := store.List(ctx, storage.ListOptions{})
	if err != nil {
		return err
	}
	d.takeAll(list)
	none := false
	watcher, err := store.Watch(ctx, storage.WatchOptions{ResourceVersion: revisionString(list.Revision), SendInitialEvents: &none})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		events, err := watcher.Next(ctx)
		if err != nil {
			return err
		}
		for _, event := range events {
			d.takeEvent(event)
		}
	}
}

// keepDefinitions follows the definitions until ctx ends.
func (s *Server) keepDefinitions(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.customs.follow(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("definitions of custom resources could not be read", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followRetry):
		}
	}
}

// takeAll makes the table what the list says.
func (d *definitions) takeAll(list *storage.List) {
	d.mu.Lock()
	defer d.mu.Unlock()
	present := map[string]bool{}
	for _, item := range list.Items {
		present[d.nameOf(item)] = true
		d.take(item)
	}
	for name := range d.known {
		if !present[name] {
			d.drop(name)
		}
	}
	d.reached = max(d.reached, list.Revision)
}

func (d *definitions) takeEvent(event watch.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch event.Type {
	case watch.Deleted:
		d.drop(d.nameOf(event.Object))
	case watch.Added, watch.Modified:
		d.take(event.Object)
	}
	d.reached = max(d.reached, event.Revision)
}

// catchUp makes the definition of a resource known that this server has not heard of yet, if there is one.
func (d *definitions) catchUp(ctx context.Context, resource schema.GroupVersionResource) {
	if resource.Group == "" {
		return
	}
	// Whoever guesses names costs the store one read at a time, however many they are.
	revision, err := d.arrival.revision(ctx, d.s.kv.Revision)
	if err != nil {
		d.s.log.Debug("no revision to look for a definition at", "resource", resource, "err", err)
		return
	}
	found, err := d.s.storeOf(d.s.table.Lookup(customResourceDefinitions)).Get(ctx, "", resource.Resource+"."+resource.Group,
		storage.GetOptions{ResourceVersion: revisionString(revision)})
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[d.nameOf(found)] != nil || found.Revision > d.reached { // else it has been deleted since
		d.take(found)
	}
}

// take makes a definition's rows what it says. d.mu is held.
func (d *definitions) take(o *watch.Object) {
	obj, err := o.Peek()
	if err != nil {
		d.s.log.Warn("a definition cannot be read", "key", o.Key, "err", err)
		return
	}
	crd := obj.(*apiextensionsv1.CustomResourceDefinition)
	old := d.known[crd.Name]
	if old != nil && old.revision >= o.Revision {
		return
	}
	next := &definition{revision: o.Revision, fingerprint: fingerprintOf(crd), group: crd.Spec.Group, ending: &atomic.Bool{}}
	if old != nil && old.fingerprint == next.fingerprint {
		old.revision = o.Revision
		next = old
	} else {
		d.replace(crd, o, old, next)
	}
	next.ending.Store(crd.DeletionTimestamp != nil)
	next.waits = !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted)
	d.assign(crd)
}

// replace puts the rows of next in the place of those of old, which may be nil.
func (d *definitions) replace(crd *apiextensionsv1.CustomResourceDefinition, o *watch.Object, old, next *definition) {
	if customresources.Serves(crd) {
		next.gone = make(chan struct{})
		rows, err := customresources.New(crd, customresources.Config{Load: loader(o), Converter: d.s.converter, Digest: hex.EncodeToString(next.fingerprint[:]), Ending: next.ending.Load, Gone: next.gone})
		if err != nil {
			d.s.log.Warn("a definition cannot be served", "definition", crd.Name, "err", err)
		}
		next.rows = rows
	}
	var before []*registry.Resource
	if old != nil {
		before = old.rows.Served
	}
	if err := d.s.table.Replace(before, next.rows.Served); err != nil {
		d.s.log.Warn("a definition cannot be served", "definition", crd.Name, "err", err)
		next.rows.Served = nil
		_ = d.s.table.Replace(before, nil) // nothing is added
	}
	d.known[crd.Name] = next
	d.retire(crd.Name, old)
	d.s.apiServices.tableChanged()
}

// loader reads a definition from its stored form, which the watch cache holds anyway.
func loader(o *watch.Object) func() (*apiextensionsv1.CustomResourceDefinition, error) {
	return func() (*apiextensionsv1.CustomResourceDefinition, error) {
		obj, err := o.Peek()
		if err != nil {
			return nil, err
		}
		return obj.(*apiextensionsv1.CustomResourceDefinition), nil
	}
}

// drop forgets a definition. d.mu is held.
func (d *definitions) drop(name string) {
	old := d.known[name]
	if old == nil {
		return
	}
	_ = d.s.table.Replace(old.rows.Served, nil) // nothing is added
	delete(d.known, name)
	d.retire(name, old)
	d.s.apiServices.tableChanged()
	d.reconsider(old.group)
}

// retire ends the watches of a definition's rows, and has them forgotten later.
func (d *definitions) retire(name string, old *definition) {
	if old == nil || old.gone == nil {
		return
	}
	close(old.gone)
	rows := old.rows.Served
	if old.rows.Stored != nil && !slices.Contains(rows, old.rows.Stored) {
		rows = append(slices.Clone(rows), old.rows.Stored)
	}
	d.retired = append(d.retired, retired{name: name, rows: rows, at: time.Now()})
}

// Rows are forgotten when the last request that may have found them has had its time.
const (
	forgetPeriod = 10 * time.Second
	forgetAfter  = maxRequestTime + forgetPeriod
)

// forgetRetired frees what the server holds for rows that left the table before a moment.
func (d *definitions) forgetRetired(before time.Time) {
	d.mu.Lock()
	due := 0
	for due < len(d.retired) && d.retired[due].at.Before(before) {
		due++
	}
	gone := slices.Clone(d.retired[:due])
	d.retired = slices.Delete(d.retired, 0, due)
	var ended []string
	for _, r := range gone {
		if d.known[r.name] == nil {
			ended = append(ended, r.name)
		}
	}
	d.mu.Unlock()
	for _, name := range ended {
		d.s.converter.Forget(name)
	}
	for _, r := range gone {
		for _, row := range r.rows {
			d.s.storage.Forget(row)
			d.s.owners.Forget(row)
		}
	}
}

func (d *definitions) keepForgetting(ctx context.Context) {
	ticker := time.NewTicker(forgetPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			d.forgetRetired(now.Add(-forgetAfter))
		}
	}
}

// fingerprintOf is equal for definitions that have the same rows. Conditions come and go, and the end begins, without a change of them.
func fingerprintOf(crd *apiextensionsv1.CustomResourceDefinition) [sha256.Size]byte {
	of := apiextensionsv1.CustomResourceDefinition{Spec: crd.Spec}
	of.UID = crd.UID
	of.Status.AcceptedNames = crd.Status.AcceptedNames
	if customresources.Serves(crd) {
		of.Name = "served"
	}
	data, err := of.Marshal()
	if err != nil {
		return [sha256.Size]byte{} // it came from such bytes
	}
	return sha256.Sum256(data)
}

func (d *definitions) nameOf(o *watch.Object) string {
	return strings.TrimPrefix(o.Key, d.s.table.Lookup(customResourceDefinitions).Prefix+"/")
}
