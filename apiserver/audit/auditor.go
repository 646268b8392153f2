package audit

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Config of an Auditor. Without a sink nothing is audited.
type Config struct {
	// Policy is what is recorded; nil means DefaultPolicy.
	Policy *Policy
	// File and Webhook are the sinks; nil: none of the kind.
	File    *FileConfig
	Webhook *WebhookConfig
	Log     *slog.Logger // nil discards
}

// Mode is whether requests wait for a sink: the values of --audit-log-mode and --audit-webhook-mode.
type Mode string

const (
	// ModeBatch: requests do not wait. Events that find the buffer full are dropped, and counted.
	ModeBatch Mode = "batch"
	// ModeBlocking: requests wait until their events are stored, and go on if that fails.
	ModeBlocking Mode = "blocking"
	// ModeBlockingStrict is ModeBlocking, but a request whose first event cannot be stored is refused.
	ModeBlockingStrict Mode = "blocking-strict"
)

// Modes are all modes.
var Modes = []Mode{ModeBatch, ModeBlocking, ModeBlockingStrict}

// sink takes events: JSON without line ends. They may be kept, and are not changed.
type sink interface {
	write(events [][]byte) error
	close() error // after the last write
}

// output is a sink with what the Auditor must know of it.
type output struct {
	name   string // in metrics and logs
	strict bool
	sink
}

// Auditor begins records. A nil Auditor audits nothing. It is safe for concurrent use.
type Auditor struct {
	policy  *Policy
	outputs []output
	metrics *metrics
	log     *slog.Logger
}

// Open opens the sinks; the Auditor is nil if there are none. The caller must Close it.
func Open(config Config) (*Auditor, error) {
	if config.File == nil && config.Webhook == nil {
		return nil, nil
	}
	a := &Auditor{policy: config.Policy, metrics: newMetrics(), log: config.Log}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.policy == nil {
		a.policy = DefaultPolicy()
	}
	if config.File != nil {
		file, err := openFile(*config.File)
		if err != nil {
			return nil, err
		}
		a.add("log", config.File.Mode, file, config.File.Batch)
	}
	if config.Webhook != nil {
		hook, err := openWebhook(*config.Webhook)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		a.add("webhook", config.Webhook.Mode, hook, config.Webhook.Batch)
	}
	return a, nil
}

func (a *Auditor) add(name string, mode Mode, s sink, batch BatchConfig) {
	if mode == ModeBatch {
		s = newBuffer(s, batch, func(n int, err error) { _ = a.failed(name, n, err) })
	}
	a.outputs = append(a.outputs, output{name: name, strict: mode == ModeBlockingStrict, sink: s})
}

// Begin decides on a request, whose client is called in q, and returns its record; nil if it is not to be recorded.
func (a *Auditor) Begin(r *http.Request, q *Request, id string, received time.Time) *Record {
	if a == nil {
		return nil
	}
	decision := a.policy.Decide(q)
	a.metrics.level(decision.Level)
	if decision.Level == auditv1.LevelNone {
		return nil
	}
	return &Record{auditor: a, decision: decision, event: newEvent(r, q, id, decision.Level, received)}
}

// write hands an event to all sinks. The error is that of a strict one, if the event is the first of its request.
func (a *Auditor) write(line []byte, first bool) (refusal error) {
	if a == nil {
		return nil // a test's record
	}
	a.metrics.events.Inc()
	for _, out := range a.outputs {
		if err := out.write([][]byte{line}); err != nil {
			err = a.failed(out.name, 1, err)
			if out.strict && first {
				a.metrics.rejected.Inc()
				refusal = err
			}
		}
	}
	return refusal
}

// failed counts n events that a sink did not take.
func (a *Auditor) failed(name string, n int, err error) error {
	if a == nil {
		return err
	}
	a.metrics.errors.WithLabelValues(name).Add(float64(n))
	if !errors.Is(err, ErrFull) { // there may be thousands a second: the counter tells
		a.log.Error("audit events are lost", "sink", name, "events", n, "err", err)
	}
	return err
}

// Collectors are the Auditor's metrics, under kube-apiserver's names.
func (a *Auditor) Collectors() []prometheus.Collector {
	if a == nil {
		return nil
	}
	return a.metrics.all()
}

// Close writes what is buffered and closes the sinks. No request may be under way.
func (a *Auditor) Close() error {
	if a == nil {
		return nil
	}
	var err error
	for _, out := range a.outputs {
		err = errors.Join(err, out.close())
	}
	return err
}
