package flowcontrol

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// Config of a Controller.
type Config struct {
	Seats   int           // how many requests run at once, exempt ones left out; 0 means 600, as in Kubernetes
	MaxWait time.Duration // how long a request waits for a seat; 0 means 15 s, a quarter of a request's time, as in Kubernetes
}

// Controller gives seats to requests. It is safe for concurrent use.
type Controller struct {
	config  Config
	metrics *metrics

	mu      sync.Mutex // guards what follows, levels and queues included
	schemas []*flowcontrolv1.FlowSchema
	rest    *flowcontrolv1.FlowSchema // catch-all, one of schemas
	levels  map[string]*level
	order   []*level // of levels, by name: those that are asked first for a free seat
}

// New returns a controller with the default objects (see Defaults).
func New(config Config) *Controller {
	config.Seats = cmp.Or(config.Seats, 600)
	config.MaxWait = cmp.Or(config.MaxWait, 15*time.Second)
	c := &Controller{config: config, metrics: newMetrics(), levels: map[string]*level{}}
	c.Configure(DefaultSchemas(), DefaultLevels())
	return c
}

// Configure takes the objects of the cluster into use. The mandatory ones are there in any case. A schema whose
// level does not exist is passed over. Requests that wait go on waiting where they are.
func (c *Controller) Configure(schemas []*flowcontrolv1.FlowSchema, levels []*flowcontrolv1.PriorityLevelConfiguration) {
	schemas, levels = withMandatory(schemas, levels)
	slices.SortFunc(schemas, func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), cmp.Compare(a.Name, b.Name))
	})
	all := 0
	for _, p := range levels {
		all += shares(&p.Spec)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := c.levels
	c.schemas, c.levels, c.order = schemas, map[string]*level{}, nil
	for _, p := range levels {
		l := gone[p.Name]
		if l == nil {
			l = &level{guess: 10 * time.Millisecond}
		}
		l.configure(p, c.config.Seats, all)
		delete(gone, p.Name)
		c.levels[p.Name], c.order = l, append(c.order, l)
		c.metrics.nominal.WithLabelValues(l.name).Set(float64(l.nominal))
	}
	slices.SortFunc(c.order, func(a, b *level) int { return cmp.Compare(a.name, b.name) })
	for _, s := range schemas {
		if s.Name == flowcontrolv1.FlowSchemaNameCatchAll {
			c.rest = s
		}
	}
	for _, l := range gone { // whoever waits in a level that is gone need not wait
		l.exempt = true
		c.serve(l)
	}
	c.dispatch()
}

// Ticket is what became of a request's matching. Leave gives its seat back and must be called once.
type Ticket struct {
	SchemaUID, LevelUID string // for the headers X-Kubernetes-PF-FlowSchema-UID and -PriorityLevel-UID
	Leave               func()
}

// Enter returns when the request may run, or with a *RejectedError, or the context's error. The ticket's UIDs
// are set in any case.
func (c *Controller) Enter(ctx context.Context, r Request) (Ticket, error) {
	c.mu.Lock()
	schema, l := c.match(&r)
	labels := c.metrics.of(l.name, schema.Name)
	ticket := Ticket{SchemaUID: string(schema.UID), LevelUID: l.uid}
	q := l.choose(schema.Name, flow(&schema.Spec, &r))
	if l.exempt || l.waiting == 0 && c.mayRun(l) {
		guess := c.begin(l, q)
		c.mu.Unlock()
		ticket.Leave = c.leaver(l, q, guess, labels)
		labels.wait.Observe(0)
		return ticket, nil
	}
	if reason := l.refuses(q); reason != "" {
		c.mu.Unlock()
		return ticket, c.reject(l, schema, reason)
	}
	w := &waiter{queue: q, seat: make(chan struct{})}
	q.push(w, l.now)
	l.waiting++
	c.mu.Unlock()
	labels.waiting.Inc()
	defer labels.waiting.Dec()
	began := time.Now()
	reason := c.wait(ctx, l, w)
	labels.wait.Observe(time.Since(began).Seconds())
	if reason != "" {
		return ticket, cmp.Or(ctx.Err(), error(c.reject(l, schema, reason)))
	}
	ticket.Leave = c.leaver(l, q, w.guess, labels)
	return ticket, nil
}

// refuses says why a request cannot even wait.
func (l *level) refuses(q *queue) string {
	switch {
	case len(l.queues) == 0:
		return ReasonConcurrency
	case len(q.waiting) >= l.queueLimit:
		return ReasonQueueFull
	}
	return ""
}

// wait returns "" when the request has a seat, or why it gave up.
func (c *Controller) wait(ctx context.Context, l *level, w *waiter) string {
	timer := time.NewTimer(c.config.MaxWait)
	defer timer.Stop()
	select {
	case <-w.seat:
		return ""
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.seat: // it got one just now
		return ""
	default:
	}
	w.queue.remove(w)
	l.waiting--
	return ReasonTimeout
}

// match returns the first schema that fits and whose level exists; catch-all does in any case.
func (c *Controller) match(r *Request) (*flowcontrolv1.FlowSchema, *level) {
	for _, s := range c.schemas {
		if l := c.levels[s.Spec.PriorityLevelConfiguration.Name]; l != nil && matches(&s.Spec, r) {
			return s, l
		}
	}
	return c.rest, c.levels[flowcontrolv1.PriorityLevelConfigurationNameCatchAll]
}

// mayRun says whether the level has a seat for one more, its own or a borrowed one. c.mu is held.
func (c *Controller) mayRun(l *level) bool {
	if l.exempt || l.running < l.nominal {
		return true
	}
	if l.running >= l.nominal+l.borrow {
		return false
	}
	spare := -l.borrowed()
	for _, other := range c.order {
		if other != l {
			spare += other.idle() - other.borrowed()
		}
	}
	return spare > 0
}

// begin gives a seat to a request of q. c.mu is held.
func (c *Controller) begin(l *level, q *queue) (guess time.Duration) {
	if q.running == 0 && len(q.waiting) == 0 {
		q.work = max(q.work, l.now)
	}
	l.running++
	q.begin(l.guess)
	return l.guess
}

// leaver returns what gives the seat back.
func (c *Controller) leaver(l *level, q *queue, guess time.Duration, labels labelled) func() {
	began := time.Now()
	labels.dispatched.Inc()
	labels.running.Inc()
	return sync.OnceFunc(func() {
		took := time.Since(began)
		labels.running.Dec()
		c.mu.Lock()
		defer c.mu.Unlock()
		l.running--
		q.end(guess, took)
		l.learn(took)
		c.dispatch()
	})
}

// dispatch gives the free seats to those who wait. c.mu is held.
func (c *Controller) dispatch() {
	for _, l := range c.order {
		c.serve(l)
	}
}

func (c *Controller) serve(l *level) {
	for l.waiting > 0 && c.mayRun(l) {
		w := l.next()
		w.guess = c.begin(l, w.queue)
		close(w.seat)
	}
}

func (c *Controller) reject(l *level, schema *flowcontrolv1.FlowSchema, reason string) *RejectedError {
	c.metrics.rejected.WithLabelValues(l.name, schema.Name, reason).Inc()
	return &RejectedError{Reason: reason, Level: l.name, Flow: schema.Name}
}
