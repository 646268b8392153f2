package apiserver

import (
	"context"
	"errors"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// Two things happen to definitions without anybody asking: one that ends loses its instances, and then itself; one
// that waits for a name gets it when it becomes free. Every server does both, without regard to the others: what
// another one has done already is left as it is.

// endRetry is how often a definition is looked at that cannot end yet, because somebody holds an instance.
const endRetry = time.Second

// instancePage is how many instances of a definition that ends are in memory at a time.
const instancePage = 500

// assign notes that there is work on a definition. d.mu is held.
func (d *definitions) assign(crd *apiextensionsv1.CustomResourceDefinition) {
	if crd.DeletionTimestamp != nil || !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) {
		d.add(crd.Name)
	}
	if crd.DeletionTimestamp == nil {
		d.reconsider(crd.Spec.Group) // it may have given up a name
	}
}

// reconsider looks again at the definitions of a group that lack a name. d.mu is held.
func (d *definitions) reconsider(group string) {
	for name, other := range d.known {
		if other.group == group && other.waits {
			d.add(name)
		}
	}
}

func (d *definitions) add(name string) {
	d.work[name] = true
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// finish works until ctx ends. What fails is tried again later, and holds up nothing else.
func (d *definitions) finish(ctx context.Context) {
	var later <-chan time.Time // when something is to be tried again
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-later:
		}
		later = nil
		if !d.workOnAll(ctx) {
			later = time.After(endRetry)
		}
	}
}

// workOnAll does what there is to do, and says whether that was all. The rest is noted for the next time.
func (d *definitions) workOnAll(ctx context.Context) (done bool) {
	done = true
	for _, name := range d.takeWork() {
		settled, err := d.workOn(ctx, name)
		if err != nil && ctx.Err() == nil {
			d.s.log.Warn("a definition is not settled yet", "definition", name, "err", err)
		}
		if !settled {
			done = false
			d.mu.Lock()
			d.work[name] = true
			d.mu.Unlock()
		}
	}
	return done
}

func (d *definitions) takeWork() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.work {
		names = append(names, name)
	}
	clear(d.work)
	return names
}

// workOn does what there is to do for one definition, and says whether that was all.
func (d *definitions) workOn(ctx context.Context, name string) (done bool, err error) {
	store := d.s.storeOf(d.s.table.Lookup(customResourceDefinitions))
	found, err := store.Get(ctx, "", name, storage.GetOptions{})
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	crd := found.Object().(*apiextensionsv1.CustomResourceDefinition)
	if crd.DeletionTimestamp == nil {
		// The write is what accepts names; if it changes nothing, nothing is written.
		_, err := store.Update(ctx, "", name, storage.UpdateOptions{UID: string(crd.UID)}, func(current *watch.Object) (runtime.Object, error) {
			return current.Object().DeepCopyObject(), nil
		})
		return err == nil || errors.Is(err, storage.ErrNotFound), err
	}
	if !apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return true, nil // somebody else's finalizer holds it
	}
	if done, err := d.deleteInstances(ctx, crd); !done || err != nil {
		return false, err
	}
	return d.end(ctx, store, crd)
}

// deleteInstances deletes every instance, and says whether none is left.
func (d *definitions) deleteInstances(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (done bool, err error) {
	d.mu.Lock()
	known := d.known[crd.Name]
	d.mu.Unlock()
	if known == nil || known.rows.Stored == nil {
		return !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established), nil // nobody could create any
	}
	t := &target{verb: "deletecollection", resource: known.rows.Stored, store: d.s.storeOf(known.rows.Stored)}
	for page := (storage.ListOptions{Limit: instancePage}); ; {
		list, err := t.store.List(ctx, page)
		if err != nil {
			return false, err
		}
		if err := d.s.deletePage(ctx, t, list.Items, &metav1.DeleteOptions{}); err != nil {
			return false, err
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	left, err := t.store.List(ctx, storage.ListOptions{Limit: 1})
	return err == nil && len(left.Items) == 0, err
}

// end takes the finalizer away, and with the last finalizer the definition.
func (d *definitions) end(ctx context.Context, store *storage.Store, crd *apiextensionsv1.CustomResourceDefinition) (done bool, err error) {
	_, err = store.Update(ctx, "", crd.Name, storage.UpdateOptions{UID: string(crd.UID)}, func(current *watch.Object) (runtime.Object, error) {
		next := current.Object().DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
		apihelpers.CRDRemoveFinalizer(next, apiextensionsv1.CustomResourceCleanupFinalizer)
		if len(next.Finalizers) == 0 {
			return nil, nil
		}
		apihelpers.SetCRDCondition(next, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionFalse, Reason: "InstanceDeletionCompleted", Message: "removed all instances",
		})
		return next, nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil // somebody else was as fast
	}
	return err == nil, err
}
