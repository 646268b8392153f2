package proxy

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// check is what a load balancer hears at a Service's health check node port.
type check struct {
	port            uint16
	namespace, name string
	endpoints       int // on this node
}

// noteCheck remembers the check that a Service asks for. here are its endpoints, and whether each is ready on this node.
func (p *Proxy) noteCheck(key string, s *corev1.Service, here map[netip.Addr]bool) {
	if s.Spec.HealthCheckNodePort == 0 || s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return
	}
	c := check{port: uint16(s.Spec.HealthCheckNodePort), namespace: s.Namespace, name: s.Name}
	for _, isReady := range here {
		if isReady {
			c.endpoints++
		}
	}
	p.checks[key] = c
}

// setChecks serves the checks of all Services.
func (p *Proxy) setChecks() {
	checks := make(map[uint16]check, len(p.checks))
	for _, c := range p.checks {
		checks[c.port] = c
	}
	p.health.set(checks)
}

// healthChecks serves the health check node ports: 200 while the node has endpoints of the Service, 503 else.
type healthChecks struct {
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	checks  map[uint16]check
	servers map[uint16]*http.Server
}

func newHealthChecks(log *slog.Logger) *healthChecks {
	return &healthChecks{log: log.With("component", "proxy"), servers: map[uint16]*http.Server{}}
}

// set has these ports served and no others. A port that something else has is tried again at the next set.
func (h *healthChecks) set(checks map[uint16]check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = checks
	for port, server := range h.servers {
		if _, ok := checks[port]; !ok {
			server.Close()
			delete(h.servers, port)
		}
	}
	for port, c := range checks {
		if h.servers[port] == nil {
			h.open(port, c)
		}
	}
}

// open serves a port. The caller holds mu.
func (h *healthChecks) open(port uint16, c check) {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		h.log.Error("health check node port cannot be served", "service", c.namespace+"/"+c.name, "err", err)
		return
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h.answer(w, port) }),
		ReadHeaderTimeout: 5 * time.Second,
	}
	h.servers[port] = server
	go func() { _ = server.Serve(listener) }() // ends when set or close closes it
}

func (h *healthChecks) answer(w http.ResponseWriter, port uint16) {
	h.mu.Lock()
	c := h.checks[port]
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(c.endpoints))
	if c.endpoints == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"service":             map[string]string{"namespace": c.namespace, "name": c.name},
		"localEndpoints":      c.endpoints,
		"serviceProxyHealthy": true,
	})
}

func (h *healthChecks) close() { h.set(nil) }
