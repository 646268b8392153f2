package probe

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Result is what the probes of one container instance have found so far.
type Result struct {
	// Started: the startup probe succeeded, or there is none.
	Started bool
	// Ready: the readiness probe's last result, or true if there is none. It means nothing before Started.
	Ready bool
	// StartupFailed and LivenessFailed: the container must be killed.
	StartupFailed, LivenessFailed bool
}

// Instance is a running container that may need probes.
type Instance struct {
	ID        string
	PodIP     string
	StartedAt time.Time
	Container *corev1.Container
	// WasReady and WasStarted are what the API last heard about this very instance: after a restart of the agent they
	// hold until the first new result, so that a restart does not take ready pods out of Services.
	WasReady, WasStarted bool
}

// Reporter hears of failures, and that a pod's results changed.
type Reporter interface {
	ProbeFailed(uid types.UID, container *corev1.Container, kind Type, err error)
	ProbeChanged(uid types.UID)
}

// Manager runs the probes of all pods. It is safe for concurrent use.
type Manager struct {
	exec     Exec
	reporter Reporter
	wg       sync.WaitGroup

	mu        sync.Mutex // guards instances; never held while calling reporter
	instances map[string]*instance
}

// instance is a probed container.
type instance struct {
	uid    types.UID
	result Result
	cancel context.CancelFunc
}

// NewManager returns a manager that runs exec probes with exec.
func NewManager(exec Exec, reporter Reporter) *Manager {
	return &Manager{exec: exec, reporter: reporter, instances: map[string]*instance{}}
}

// Sync makes the running instances of a pod, and no others, have probe workers. Workers end with ctx.
func (m *Manager) Sync(ctx context.Context, uid types.UID, running []Instance) {
	keep := map[string]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range running {
		keep[r.ID] = true
		if _, ok := m.instances[r.ID]; !ok {
			m.start(ctx, uid, r)
		}
	}
	for id, in := range m.instances {
		if in.uid == uid && !keep[id] {
			in.cancel()
			delete(m.instances, id)
		}
	}
}

// start begins the probes of one instance; m.mu is held.
func (m *Manager) start(ctx context.Context, uid types.UID, r Instance) {
	ctx, cancel := context.WithCancel(ctx)
	c := r.Container
	in := &instance{uid: uid, cancel: cancel, result: Result{
		Started: c.StartupProbe == nil || r.WasStarted,
		Ready:   c.ReadinessProbe == nil || r.WasReady,
	}}
	m.instances[r.ID] = in
	if !in.result.Started {
		m.run(ctx, in, r, Startup, func(ok bool) bool {
			if ok {
				m.startSteady(ctx, in, r)
			}
			return true
		})
		return
	}
	m.startSteady(ctx, in, r)
}

// startSteady begins what runs once the container has started up.
func (m *Manager) startSteady(ctx context.Context, in *instance, r Instance) {
	m.run(ctx, in, r, Readiness, nil)
	m.run(ctx, in, r, Liveness, func(ok bool) bool { return !ok })
}

func (m *Manager) run(ctx context.Context, in *instance, r Instance, kind Type, until func(bool) bool) {
	p := kind.Of(r.Container)
	if p == nil {
		return
	}
	w := &worker{
		schedule: scheduleOf(p), started: r.StartedAt, until: until,
		check: func(ctx context.Context) error {
			return Check(ctx, &p.ProbeHandler, Target{ContainerID: r.ID, PodIP: r.PodIP, Container: r.Container}, m.exec)
		},
		failed: func(err error) { m.reporter.ProbeFailed(in.uid, r.Container, kind, err) },
		result: func(ok bool) { m.record(in, kind, ok) },
	}
	m.wg.Go(func() { w.run(ctx) })
}

func (m *Manager) record(in *instance, kind Type, ok bool) {
	m.mu.Lock()
	before := in.result
	switch kind {
	case Startup:
		in.result.Started, in.result.StartupFailed = ok, !ok
	case Readiness:
		in.result.Ready = ok
	case Liveness:
		in.result.LivenessFailed = !ok
	}
	changed := before != in.result
	m.mu.Unlock()
	if changed {
		m.reporter.ProbeChanged(in.uid)
	}
}

// Result returns what is known of an instance. One without probe workers is started and ready.
func (m *Manager) Result(containerID string) Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if in, ok := m.instances[containerID]; ok {
		return in.result
	}
	return Result{Started: true, Ready: true}
}

// Wait blocks until every worker has ended, which the end of the contexts given to Sync brings about.
func (m *Manager) Wait() { m.wg.Wait() }
