package probe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Type of a probe.
type Type int

// The three probes of a container.
const (
	Startup Type = iota
	Readiness
	Liveness
)

// String is the type as events spell it.
func (t Type) String() string { return [...]string{"Startup", "Readiness", "Liveness"}[t] }

// Of returns the container's probe of this type, or nil.
func (t Type) Of(c *corev1.Container) *corev1.Probe {
	return [...]*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe}[t]
}

// schedule of a probe, with the API's defaults filled in.
type schedule struct {
	delay, period, timeout time.Duration
	successes, failures    int
}

func scheduleOf(p *corev1.Probe) schedule {
	seconds := func(n, def int32) time.Duration {
		if n == 0 {
			n = def
		}
		return time.Duration(n) * time.Second
	}
	count := func(n, def int32) int {
		if n == 0 {
			n = def
		}
		return int(n)
	}
	return schedule{
		delay: seconds(p.InitialDelaySeconds, 0), period: seconds(p.PeriodSeconds, 10), timeout: seconds(p.TimeoutSeconds, 1),
		successes: count(p.SuccessThreshold, 1), failures: count(p.FailureThreshold, 3),
	}
}

// worker repeats one probe. It reports a result when successes or failures in a row reach their threshold, and
// each single failure as it happens.
type worker struct {
	schedule
	started time.Time // of the container: the initial delay counts from here
	check   func(ctx context.Context) error
	failed  func(err error) // one failure
	result  func(ok bool)   // a threshold was reached
	until   func(ok bool) bool
}

// run probes until ctx ends or until says that the result was the last one needed.
func (w *worker) run(ctx context.Context) {
	if !sleep(ctx, time.Until(w.started.Add(w.delay))) {
		return
	}
	good, bad := 0, 0
	for {
		begun := time.Now()
		err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			good, bad = good+1, 0
		} else {
			good, bad = 0, bad+1
			w.failed(err)
		}
		if ok := err == nil; ok && good >= w.successes || !ok && bad >= w.failures {
			w.result(ok)
			if w.until != nil && w.until(ok) {
				return
			}
		}
		if !sleep(ctx, w.period-time.Since(begun)) {
			return
		}
	}
}

func (w *worker) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.check(ctx)
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
