package aggregation

import (
	"context"
	"math/rand/v2"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// When a backend is asked: as long as it is well, every period, and less than a second after anything about it has changed;
// otherwise first after firstRetry, and each time after twice as long, up to the period.
const (
	checkPeriod = 30 * time.Second
	firstRetry  = time.Second
)

// watch checks a remote until ctx ends.
func (a *Aggregator) watch(ctx context.Context, r *remote) {
	retry := firstRetry
	for {
		select {
		case a.checks <- struct{}{}: // a turn
		case <-ctx.Done():
			return
		}
		ok := a.checkNow(ctx, r)
		<-a.checks
		wait := checkPeriod + rand.N(checkPeriod/10) // servers that began together do not ask together for ever
		if ok {
			retry = firstRetry
		} else {
			wait, retry = retry, min(2*retry, checkPeriod)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.look:
			retry = firstRetry
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// checkNow checks a remote once, and says whether it is well.
func (a *Aggregator) checkNow(ctx context.Context, r *remote) bool {
	list, c := r.check(ctx, a.config)
	if ctx.Err() != nil {
		return false // it is not the backend's fault
	}
	r.mu.Lock()
	before := r.found
	r.found = c
	if list != nil {
		r.resources = resourcesOf(list)
	}
	r.mu.Unlock()
	if before.isTrue() != c.isTrue() || before == nil {
		a.log.Info("an aggregated API server is looked at", "apiservice", r.name, "available", c.Status, "reason", c.Reason, "message", c.Message)
	}
	a.mu.Lock()
	a.publish()
	a.mu.Unlock()
	a.config.Report(ctx, r.name, apiregistrationv1.APIServiceCondition(*c))
	if c.isTrue() {
		r.backend.refreshDocuments(ctx, a.log)
	}
	return c.isTrue()
}
