package storage

import (
	"bytes"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/watch"
)

// Change computes the next state of an object from the current one, which is nil if there is none
// (only with CreateMissing). It may be called several times, each time with a newer state, and must
// not have side effects. The current object is shared: DeepCopy it before changing anything. The
// object it returns is given away. It returns nil to have the object deleted, and the current object
// itself to leave all as it is. Its error ends the update and is returned as it is.
type Change func(current *watch.Object) (runtime.Object, error)

// Update is a guaranteed update: it calls change with the current object and stores what that
// returns, on condition that the object has not changed meanwhile; if it has, it begins again. It is
// every kind of write: an update, a create if CreateMissing is set, a deletion if change returns nil.
//
// The first attempt starts from the cached object, or from what an update before it in this server has made (turns.go),
// without asking the store: the condition of the transaction protects it. Only a failure, or an update that changes nothing, makes it look whether
// what it started from was the newest.
func (s *Store) Update(ctx context.Context, namespace, name string, options UpdateOptions, change Change) (Result, error) {
	key, err := s.key(namespace, name)
	if err != nil {
		return Result{}, err
	}
	u := update{Store: s, key: key, options: options, change: change}
	if options.DryRun {
		return u.run(ctx, &turn{})
	}
	from, _ := parseRevision(options.From) // one that is none has the store asked, like any
	mine, err := s.turns.take(ctx, key, from)
	if err != nil {
		return Result{}, err
	}
	defer s.turns.pass(key, mine)
	result, err := u.run(ctx, mine)
	if err == nil && result.Changed {
		s.turns.wrote(mine, result)
	}
	return result, err
}

// run attempts the update until it has succeeded or failed for good.
func (u *update) run(ctx context.Context, mine *turn) (Result, error) {
	cached, revision, err := u.cache.Get(ctx, u.key)
	if err != nil {
		return Result{}, err
	}
	u.current = mine.newest(cached, revision)
	for {
		result, err := u.attempt(ctx)
		if lost, ok := asLost(err); ok {
			if err := u.beginAgain(lost); err != nil {
				return Result{}, err
			}
			continue
		}
		if u.fresh || (err == nil && result.Changed && !u.options.DryRun) || err != nil && u.passed() {
			return result, err
		}
		same, freshErr := u.refresh(ctx)
		if freshErr != nil {
			return Result{}, freshErr
		}
		if same {
			return result, err
		}
	}
}

// update is one call of Update.
type update struct {
	*Store
	key     string
	options UpdateOptions
	change  Change

	current    *watch.Object // what the next attempt starts from; nil: no object
	fresh      bool          // current was read from the store after the call began
	claimsLost int           // attempts that failed for a claim alone
}

// passed says whether the current object is newer than the one that the change is meant for.
func (u *update) passed() bool {
	from, err := parseRevision(u.options.From)
	return err == nil && from > 0 && u.current != nil && u.current.Revision > from
}

// attempt computes the next state from the current one and writes it.
func (u *update) attempt(ctx context.Context) (Result, error) {
	if err := u.precondition(); err != nil {
		return Result{}, err
	}
	old, err := decoded(u.current)
	if err != nil {
		return Result{}, err
	}
	next, err := u.change(u.current)
	switch {
	case err != nil:
		return Result{}, err
	case next == nil && old == nil:
		return Result{}, ErrNotFound
	case next == nil:
		return u.remove(ctx, old)
	case next == old:
		return Result{Object: u.current}, nil
	}
	return u.replace(ctx, next)
}

func (u *update) remove(ctx context.Context, old runtime.Object) (Result, error) {
	result := Result{Object: u.current, Deleted: true, Changed: true}
	if u.options.DryRun {
		return result, nil
	}
	claims, err := u.diffClaims(old, nil)
	if err != nil {
		return Result{}, err
	}
	result.Object, err = u.commit(ctx, write{key: u.key, current: u.current, claims: claims})
	return result, err
}

// replace stores next, unless it is what is stored already.
func (u *update) replace(ctx context.Context, next runtime.Object) (Result, error) {
	w, err := u.prepare(ctx, u.key, u.current, next)
	if err != nil {
		return Result{}, err
	}
	if u.options.Beside != nil {
		w.beside = u.options.Beside()
	}
	if u.current != nil && bytes.Equal(w.value, u.current.Value()) {
		return Result{Object: u.current}, nil
	}
	result := Result{Created: u.current == nil, Changed: true}
	if u.options.DryRun {
		result.Object = u.unstored(w.value)
		return result, nil
	}
	result.Object, err = u.commit(ctx, w)
	return result, err
}

// unstored is the object that a dry run would have stored, with the resourceVersion it has now.
func (u *update) unstored(value []byte) *watch.Object {
	if u.current == nil {
		return watch.NewObject(u.key, value, 0, 0, u.codec)
	}
	return watch.NewObject(u.key, value, u.current.Revision, u.current.CreateRevision, u.codec)
}

// precondition checks what the caller demands of the current object.
func (u *update) precondition() error {
	uid, resourceVersion := "", ""
	switch {
	case u.current == nil && !u.options.CreateMissing:
		return ErrNotFound
	case u.current != nil:
		obj, err := u.current.Get()
		if err != nil {
			return err
		}
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		uid, resourceVersion = string(accessor.GetUID()), accessor.GetResourceVersion()
	}
	if want := u.options.UID; want != "" && want != uid {
		return &PreconditionError{Field: "UID", Want: want, Got: uid}
	}
	if want := u.options.ResourceVersion; want != "" && want != resourceVersion {
		return &PreconditionError{Field: "ResourceVersion", Want: want, Got: resourceVersion}
	}
	return nil
}

// beginAgain prepares the next attempt after a lost one.
func (u *update) beginAgain(lost *lostError) error {
	if lost.claim != nil {
		if u.claimsLost++; u.claimsLost == claimAttempts || u.row.Strategy.Allocate == nil {
			return lost.claim
		}
	}
	u.current, u.fresh = lost.current, true
	return nil
}

// refresh reads the newest state and reports whether it is what the last attempt started from.
func (u *update) refresh(ctx context.Context) (same bool, err error) {
	newest, err := u.readNewest(ctx, u.key)
	if err != nil {
		return false, err
	}
	same = sameVersion(newest, u.current)
	u.current, u.fresh = newest, true
	return same, nil
}
