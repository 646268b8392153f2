package leader

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// campaign waits until the Lease can be had, and takes it; nil when ctx ends. The fence is open then.
func (e *Elector) campaign(ctx context.Context) *coordinationv1.Lease {
	for ctx.Err() == nil {
		lease, at, known := e.seen.last()
		wait := e.retryPeriod()
		if known {
			e.tell(lease)
			if wait = e.untilFree(lease, at); wait <= 0 {
				if got := e.take(ctx, lease); got != nil {
					return got
				}
				wait = e.retryPeriod()
			}
		}
		select {
		case <-e.seen.changed:
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return nil
}

// untilFree is how long the Lease is somebody else's, as far as can be seen from here.
func (e *Elector) untilFree(lease *coordinationv1.Lease, at time.Time) time.Duration {
	if lease == nil {
		return 0
	}
	term := termOf(lease)
	isFormer := term.holder == e.config.Identity && e.ours.holder == ""
	if term.holder == "" || isFormer || term.is(e.ours) || term.is(e.tried) {
		return 0
	}
	return time.Until(at.Add(valid(lease)))
}

// take makes the Lease ours, or nil: somebody was faster, or nobody answers.
func (e *Elector) take(ctx context.Context, lease *coordinationv1.Lease) *coordinationv1.Lease {
	began := time.Now()
	asking, cancel := context.WithTimeout(ctx, e.renewDeadline())
	defer cancel()
	got, err := e.writeTaken(asking, lease, began)
	if err != nil {
		if ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			e.config.Log.Debug("lease not taken", "lease", e.config.Name, "err", err)
		}
		e.look(ctx) // an answer that was lost may have said yes
		return nil
	}
	e.ours = termOf(got)
	e.fence.open(began.Add(e.renewDeadline()))
	e.seen.note(got)
	e.tell(got)
	return got
}

func (e *Elector) writeTaken(ctx context.Context, lease *coordinationv1.Lease, now time.Time) (*coordinationv1.Lease, error) {
	if lease == nil {
		taken := e.taken(e.empty(), now)
		e.tried = termOf(taken)
		return e.leases.Create(ctx, taken, metav1.CreateOptions{})
	}
	taken := e.taken(lease, now)
	e.tried = termOf(taken)
	return e.leases.Update(ctx, taken, metav1.UpdateOptions{})
}

// look asks for the Lease, which the watch may show later.
func (e *Elector) look(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, e.renewDeadline())
	defer cancel()
	lease, err := e.leases.Get(asking, e.config.Name, metav1.GetOptions{})
	if err == nil {
		e.seen.note(lease)
	} else if apierrors.IsNotFound(err) {
		e.seen.note(nil)
	}
}

// tell logs who leads, once.
func (e *Elector) tell(lease *coordinationv1.Lease) {
	if lease == nil {
		return
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder != "" && holder != e.told {
		e.config.Log.Info("leader elected", "lease", e.config.Name, "leader", holder)
	}
	e.told = holder
}
