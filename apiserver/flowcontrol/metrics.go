package flowcontrol

import "github.com/prometheus/client_golang/prometheus"

// metrics have the names of Kubernetes, so that its dashboards work.
type metrics struct {
	dispatched, rejected *prometheus.CounterVec
	waiting, running     *prometheus.GaugeVec
	nominal              *prometheus.GaugeVec
	wait                 *prometheus.HistogramVec
}

func newMetrics() *metrics {
	labels := []string{"priority_level", "flow_schema"}
	return &metrics{
		dispatched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_flowcontrol_dispatched_requests_total", Help: "Requests that got a seat.",
		}, labels),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_flowcontrol_rejected_requests_total", Help: "Requests refused with 429 because they got no seat.",
		}, append(labels, "reason")),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_flowcontrol_current_inqueue_requests", Help: "Requests that wait for a seat.",
		}, labels),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_flowcontrol_current_executing_requests", Help: "Requests that have a seat.",
		}, labels),
		nominal: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_flowcontrol_nominal_limit_seats", Help: "Seats that a priority level may always use.",
		}, labels[:1]),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_flowcontrol_request_wait_duration_seconds", Help: "Time that requests have waited for a seat.",
			Buckets: []float64{0, .005, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15},
		}, labels),
	}
}

// labelled are the metrics of one level and schema. There are no more of them than such objects were ever made.
type labelled struct {
	dispatched       prometheus.Counter
	waiting, running prometheus.Gauge
	wait             prometheus.Observer
}

func (m *metrics) of(level, schema string) labelled {
	return labelled{
		dispatched: m.dispatched.WithLabelValues(level, schema),
		waiting:    m.waiting.WithLabelValues(level, schema),
		running:    m.running.WithLabelValues(level, schema),
		wait:       m.wait.WithLabelValues(level, schema),
	}
}

// Collectors are the controller's metrics.
func (c *Controller) Collectors() []prometheus.Collector {
	m := c.metrics
	return []prometheus.Collector{m.dispatched, m.rejected, m.waiting, m.running, m.nominal, m.wait}
}
