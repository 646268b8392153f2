package audit

import (
	"github.com/prometheus/client_golang/prometheus"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// metrics have Kubernetes' names.
type metrics struct {
	events   prometheus.Counter
	errors   *prometheus.CounterVec
	rejected prometheus.Counter
	levels   *prometheus.CounterVec
	byLevel  map[auditv1.Level]prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_event_total", Help: "Audit events, each counted once whatever the number of sinks.",
		}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_audit_error_total", Help: "Audit events that a sink did not take, dropped ones included.",
		}, []string{"plugin"}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_requests_rejected_total", Help: "Requests refused because their audit event could not be stored.",
		}),
		levels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_audit_level_total", Help: "Requests by the level that the audit policy has for them.",
		}, []string{"level"}),
		byLevel: map[auditv1.Level]prometheus.Counter{},
	}
	for _, level := range levels {
		m.byLevel[level] = m.levels.WithLabelValues(string(level))
	}
	return m
}

func (m *metrics) level(level auditv1.Level) { m.byLevel[level].Inc() }

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.events, m.errors, m.rejected, m.levels}
}
