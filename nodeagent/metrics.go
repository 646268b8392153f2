package nodeagent

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics of one agent, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	started  prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), started: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kubelet_started_containers_total", Help: "Cumulative number of containers started",
	})}
	m.registry.MustRegister(m.started)
	return m
}

// watchPods adds the number of pods that the agent has in hand.
func (m *metrics) watchPods(count func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubelet_running_pods", Help: "Number of pods that this node has in hand",
	}, func() float64 { return float64(count()) }))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
