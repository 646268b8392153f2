package apiserver

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the server's own; the names are Kubernetes', so that its dashboards work.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	inFlight  *prometheus.GaugeVec
	refused   *prometheus.CounterVec
	watchers  prometheus.Gauge
	bodyBytes prometheus.Gauge

	authenticationReloads *prometheus.CounterVec
	authorizationReloads  *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and status code.",
		}, []string{"verb", "group", "resource", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Time to answer, long-running requests left out.",
			Buckets: []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"verb"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_current_inflight_requests", Help: "Requests for resources being served, long-running ones left out.",
		}, []string{"request_kind"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_dropped_requests_total", Help: "Requests refused with 429 because too many were in flight.",
		}, []string{"request_kind"}),
		watchers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests", Help: "Open watches and streams.",
		}),
		bodyBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kontiki_request_body_bytes", Help: "Bytes of the request bodies in memory.",
		}),
		authenticationReloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_authentication_config_controller_automatic_reloads_total", Help: "How often the file of --authentication-config was taken into use, and how often it could not be.",
		}, []string{"status"}),
		authorizationReloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_authorization_config_controller_automatic_reloads_total", Help: "How often the file of --authorization-config was taken into use, and how often it could not be.",
		}, []string{"status"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.inFlight, m.refused, m.watchers, m.bodyBytes,
		m.authenticationReloads, m.authorizationReloads,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// withMetrics counts and times every request once it has been answered.
func (s *Server) withMetrics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		facts := &requestFacts{verb: methodLabel(r.Method), received: time.Now()}
		recorder := &statusRecorder{ResponseWriter: w, facts: facts, opening: s.answerDeadline(w, r, facts)}
		defer func() {
			s.metrics.requests.WithLabelValues(facts.verb, facts.group, facts.resource, strconv.Itoa(recorder.code())).Inc()
			if !facts.longRunning {
				s.metrics.seconds.WithLabelValues(facts.verb).Observe(time.Since(facts.received).Seconds())
			}
		}()
		next.ServeHTTP(recorder, r.WithContext(withFacts(r.Context(), facts)))
	})
}

// methodLabel stands for the verb until that is known. A client can make up methods without end, and
// each label value is kept for ever.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// statusRecorder remembers the status code that went out.
type statusRecorder struct {
	http.ResponseWriter
	facts   *requestFacts
	status  int
	opening func() // called before the first byte goes out
}

func (w *statusRecorder) open(code int) {
	if w.status == 0 {
		w.status = code
		w.opening()
		if w.facts.longRunning {
			w.facts.record.Started(code)
		}
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *statusRecorder) WriteHeader(code int) {
	w.open(code)
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusRecorder) Write(b []byte) (int, error) {
	w.open(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *statusRecorder) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack implements http.Hijacker for the streams to nodes.
func (w *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.open(http.StatusSwitchingProtocols)
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

func (w *statusRecorder) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// answeredCode is the status code that went out, or that net/http sends if nothing did.
func answeredCode(w http.ResponseWriter) int {
	if recorder, ok := w.(*statusRecorder); ok {
		return recorder.code()
	}
	return http.StatusOK
}

// started says whether anything of the response has gone out.
func started(w http.ResponseWriter) bool {
	recorder, ok := w.(*statusRecorder)
	return ok && recorder.status != 0
}
