package leader

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// giveBackLimit is how long a process that stops tries to give the Lease back: without a quorum it cannot.
const giveBackLimit = time.Second

// term has work done while the Lease is ours. It ends when the Lease is lost, when ctx does, or when work does by itself; it
// returns when work has returned, with its error.
func (e *Elector) term(ctx context.Context, lease *coordinationv1.Lease, work func(context.Context) error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = work(working)
	}()
	lease = e.hold(working, lease, done)
	stop()
	<-done
	e.giveBack(context.WithoutCancel(ctx), lease)
	e.fence.close()
	return err
}

// hold renews the Lease until it is lost, ctx ends, or work is done. It returns the newest version.
func (e *Elector) hold(ctx context.Context, lease *coordinationv1.Lease, done <-chan struct{}) *coordinationv1.Lease {
	wait := e.renewPeriod()
	for {
		select {
		case <-time.After(min(wait, e.fence.left())):
		case <-done:
			return lease
		case <-ctx.Done():
			return lease
		}
		if e.fence.left() <= 0 {
			return lease
		}
		next, err := e.renew(ctx, lease)
		switch {
		case err == nil:
			lease, wait = next, e.renewPeriod()
		case errors.Is(err, errLost):
			e.fence.close()
			return lease
		default:
			wait = e.retryPeriod()
		}
	}
}

// renew writes the Lease again. A conflict is our own renewal whose answer was lost, or the end.
func (e *Elector) renew(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	began := time.Now()
	asking, cancel := context.WithTimeout(ctx, e.fence.left())
	defer cancel()
	next, err := e.leases.Update(asking, e.renewed(lease, began), metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		now, getErr := e.leases.Get(asking, e.config.Name, metav1.GetOptions{})
		if getErr != nil && !apierrors.IsNotFound(getErr) {
			return nil, getErr
		}
		if getErr != nil || !termOf(now).is(e.ours) {
			return nil, errLost
		}
		next, err = e.leases.Update(asking, e.renewed(now, began), metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, err
	}
	e.fence.open(began.Add(e.renewDeadline()))
	return next, nil
}

// giveBack lets others have the Lease at once, unless it was lost.
func (e *Elector) giveBack(ctx context.Context, lease *coordinationv1.Lease) {
	if e.fence.left() <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, giveBackLimit)
	defer cancel()
	_, err := e.leases.Update(ctx, givenBack(lease, time.Now()), metav1.UpdateOptions{})
	if apierrors.IsConflict(err) { // a renewal whose answer was not waited for
		if lease, err = e.leases.Get(ctx, e.config.Name, metav1.GetOptions{}); err == nil && termOf(lease).is(e.ours) {
			_, err = e.leases.Update(ctx, givenBack(lease, time.Now()), metav1.UpdateOptions{})
		}
	}
	if err != nil {
		e.config.Log.Info("lease not given back, it will expire", "lease", e.config.Name, "err", err)
	}
}
