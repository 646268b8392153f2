package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// script is a probe's exec whose answers follow a script: a word per call, "ok" or "fail"; the last one stays.
type script struct {
	mu    sync.Mutex
	words []string
	calls []time.Time
}

func (s *script) exec(ctx context.Context, _ string, _ []string, _ time.Duration) (string, int32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, time.Now())
	word := s.words[0]
	if len(s.words) > 1 {
		s.words = s.words[1:]
	}
	switch word {
	case "ok":
		return "", 0, nil
	case "fail":
		return "no", 1, nil
	}
	<-ctx.Done() // "hang"
	return "", 0, ctx.Err()
}

// journal records what a manager reports, with virtual seconds.
type journal struct {
	begin  time.Time
	mu     sync.Mutex
	events []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, fmt.Sprintf("%gs ", time.Since(j.begin).Seconds())+fmt.Sprintf(format, args...))
}

func (j *journal) ProbeFailed(_ types.UID, _ *corev1.Container, kind Type, err error) {
	j.note("%s failed: %v", kind, err)
}
func (j *journal) ProbeChanged(types.UID) { j.note("changed") }

func execProbe(p corev1.Probe) *corev1.Probe {
	p.Exec = &corev1.ExecAction{Command: []string{"x"}}
	return &p
}

// run plays a container's probes in a bubble of virtual time.
func run(t *testing.T, c *corev1.Container, words []string, forSeconds int, check func(m *Manager, j *journal)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, j := &script{words: words}, &journal{begin: time.Now()}
		m := NewManager(s.exec, j)
		m.Sync(ctx, "u", []Instance{{ID: "c", StartedAt: time.Now(), Container: c}})
		time.Sleep(time.Duration(forSeconds)*time.Second + time.Millisecond)
		synctest.Wait()
		check(m, j)
		cancel()
		m.Wait()
	})
}

func TestReadiness(t *testing.T) {
	c := &corev1.Container{ReadinessProbe: execProbe(corev1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 2, SuccessThreshold: 2, FailureThreshold: 2})}
	run(t, c, []string{"ok", "ok", "fail", "ok", "fail", "fail"}, 4, func(m *Manager, j *journal) {
		require.False(t, m.Result("c").Ready, "not ready before the first result")
		require.Empty(t, j.events)
	})
	run(t, c, []string{"ok", "ok", "fail", "ok", "fail", "fail"}, 16, func(m *Manager, j *journal) {
		require.Equal(t, []string{"7s changed", "9s Readiness failed: no", "13s Readiness failed: no", "15s Readiness failed: no", "15s changed"}, j.events)
		require.False(t, m.Result("c").Ready)
	})
}

func TestLivenessStopsAtItsThreshold_ND03(t *testing.T) {
	c := &corev1.Container{LivenessProbe: execProbe(corev1.Probe{PeriodSeconds: 2, FailureThreshold: 3})}
	run(t, c, []string{"fail"}, 60, func(m *Manager, j *journal) {
		require.Equal(t, []string{"0s Liveness failed: no", "2s Liveness failed: no", "4s Liveness failed: no", "4s changed"}, j.events)
		require.True(t, m.Result("c").LivenessFailed)
		m.Sync(context.Background(), "u", nil)
		require.Equal(t, Result{Started: true, Ready: true}, m.Result("c"), "forgotten with its container")
	})
	synctest.Test(t, func(t *testing.T) { // the next instance has three failures of its own
		ctx, cancel := context.WithCancel(t.Context())
		s, j := &script{words: []string{"fail"}}, &journal{begin: time.Now()}
		m := NewManager(s.exec, j)
		m.Sync(ctx, "u", []Instance{{ID: "one", StartedAt: time.Now(), Container: c}})
		time.Sleep(3 * time.Second)
		m.Sync(ctx, "u", []Instance{{ID: "two", StartedAt: time.Now(), Container: c}})
		time.Sleep(3 * time.Second)
		require.False(t, m.Result("two").LivenessFailed)
		time.Sleep(2 * time.Second)
		require.True(t, m.Result("two").LivenessFailed)
		cancel()
		m.Wait()
	})
}

func TestStartupHoldsTheOthersBack(t *testing.T) {
	c := &corev1.Container{
		StartupProbe:   execProbe(corev1.Probe{PeriodSeconds: 1, FailureThreshold: 30}),
		ReadinessProbe: execProbe(corev1.Probe{PeriodSeconds: 10}),
	}
	run(t, c, []string{"fail", "fail", "ok", "ok"}, 1, func(m *Manager, _ *journal) { require.False(t, m.Result("c").Started) })
	run(t, c, []string{"fail", "fail", "ok", "ok"}, 3, func(m *Manager, _ *journal) {
		require.Equal(t, Result{Started: true, Ready: true}, m.Result("c"))
	})
	c.StartupProbe.FailureThreshold = 2
	run(t, c, []string{"fail"}, 10, func(m *Manager, _ *journal) { require.True(t, m.Result("c").StartupFailed) })
}

func TestTimeout(t *testing.T) {
	c := &corev1.Container{ReadinessProbe: execProbe(corev1.Probe{PeriodSeconds: 5, TimeoutSeconds: 2, FailureThreshold: 1})}
	run(t, c, []string{"hang"}, 3, func(_ *Manager, j *journal) {
		require.Equal(t, []string{`2s Readiness failed: command "x": context deadline exceeded`}, j.events)
	})
}

func TestResultsSurviveARestart(t *testing.T) {
	c := &corev1.Container{ReadinessProbe: execProbe(corev1.Probe{PeriodSeconds: 10, InitialDelaySeconds: 10})}
	m := NewManager((&script{words: []string{"ok"}}).exec, &journal{})
	ctx, cancel := context.WithCancel(t.Context())
	m.Sync(ctx, "u", []Instance{{ID: "c", StartedAt: time.Now(), Container: c, WasReady: true, WasStarted: true}})
	require.True(t, m.Result("c").Ready)
	cancel()
	m.Wait()
}

func TestChecks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			if r.Host != "asked.example" || r.Header.Get("X") != "y" || r.URL.Query().Get("q") != "1" {
				w.WriteHeader(http.StatusTeapot)
			}
		case "/away":
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	target := Target{PodIP: "127.0.0.1", Container: &corev1.Container{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(port)}}}}
	get := func(path string, p intstr.IntOrString) *corev1.ProbeHandler {
		return &corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: p, HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "asked.example"}, {Name: "X", Value: "y"}}}}
	}
	check := func(h *corev1.ProbeHandler) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return Check(ctx, h, target, nil)
	}
	require.NoError(t, check(get("/ok?q=1", intstr.FromString("http"))))
	require.NoError(t, check(get("/away", intstr.FromInt32(int32(port)))), "a redirect elsewhere is an answer")
	require.EqualError(t, check(get("/broken", intstr.FromInt32(int32(port)))), "HTTP probe failed with statuscode: 500")
	require.ErrorIs(t, check(get("/ok", intstr.FromString("nope"))), ErrPort)
	require.NoError(t, check(&corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(port))}}))

	server.Close()
	require.Error(t, check(&corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(port))}}))
}

func TestGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, status := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(server, status)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	status.SetServingStatus("sick", healthpb.HealthCheckResponse_NOT_SERVING)
	port := int32(listener.Addr().(*net.TCPAddr).Port)
	check := func(service string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return Check(ctx, &corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port, Service: &service}}, Target{PodIP: "127.0.0.1"}, nil)
	}
	require.NoError(t, check(""))
	require.EqualError(t, check("sick"), `service unhealthy (responded with "NOT_SERVING")`)
	require.Error(t, check("unknown"))
}

func TestExecError(t *testing.T) {
	boom := errors.New("boom")
	err := Check(t.Context(), &corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"a", "b"}}}, Target{},
		func(context.Context, string, []string, time.Duration) (string, int32, error) { return "", 0, boom })
	require.ErrorIs(t, err, boom)
}
