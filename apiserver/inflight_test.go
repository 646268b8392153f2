package apiserver_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
)

const flows = "/apis/flowcontrol.apiserver.k8s.io/v1/"

// The mandatory and suggested objects exist, are put right, and answers name those that applied.
func TestFlowControlObjects(t *testing.T) {
	_, c := start(t)
	for _, name := range []string{"exempt", "catch-all", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default"} {
		c.get(flows + "prioritylevelconfigurations/" + name).ok()
	}
	exempt := c.get(flows + "flowschemas/exempt").ok()
	require.Eventually(t, func() bool {
		return c.get(maps).ok().header.Get("X-Kubernetes-Pf-Flowschema-Uid") == string(exempt.object().GetUID())
	}, 10*time.Second, 10*time.Millisecond)
	require.NotEmpty(t, c.get("/version").ok().header.Get("X-Kubernetes-Pf-Prioritylevel-Uid"))
	require.Eventually(t, func() bool {
		return strings.Contains(string(c.get(flows+"flowschemas/probes").ok().body), `"Dangling"`)
	}, 10*time.Second, 10*time.Millisecond)
	require.Contains(t, string(c.get("/metrics").body), `apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 245`)
}

// A level without seats for the scheduler: what it asks is refused at once, with what a client needs to know.
func TestLevelWithoutSeats(t *testing.T) {
	cluster, c := start(t)
	scheduler := schedulerWithAllRights(t, cluster, c)
	scheduler.get(maps).ok()
	c.post(flows+"prioritylevelconfigurations", `{"metadata":{"name":"none"},"spec":{"type":"Limited",
		"limited":{"nominalConcurrencyShares":0,"borrowingLimitPercent":0,"limitResponse":{"type":"Reject"}}}}`).ok()
	c.post(flows+"flowschemas", `{"metadata":{"name":"none"},"spec":{"matchingPrecedence":5,"priorityLevelConfiguration":{"name":"none"},
		"rules":[{"subjects":[{"kind":"User","user":{"name":"system:kube-scheduler"}}],
		"resourceRules":[{"verbs":["list"],"apiGroups":[""],"resources":["configmaps"],"namespaces":["*"]}]}]}}`).ok()
	require.Eventually(t, func() bool { return scheduler.get(maps).code == http.StatusTooManyRequests }, time.Minute, 10*time.Millisecond)
	refused := scheduler.get(maps)
	refused.fails(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "Too many requests")
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	require.NotEmpty(t, refused.header.Get("X-Kubernetes-Pf-Flowschema-Uid"))
	scheduler.get("/api/v1/pods").ok()
	c.get(maps).ok()
	require.Contains(t, string(c.get("/metrics").body), `apiserver_flowcontrol_rejected_requests_total{flow_schema="none",priority_level="none",reason="concurrency-limit"}`)
}

// Clients that dribble their bodies in, more of them than there are seats: nobody else notices.
func TestSlowBodiesHoldNoSeats(t *testing.T) {
	cluster, c := start(t)
	schedulerWithAllRights(t, cluster, c)
	config := cluster.REST(pki.Scheduler)
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	require.NoError(t, err)
	const clients = 700
	slow := make([]*tls.Conn, clients)
	for i := range slow {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(config.Host, "https://"), &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		slow[i] = conn
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{", maps)
		require.NoError(t, err)
	}
	scheduler := clientFor(t, rest.CopyConfig(config))
	scheduler.post(maps, configMap("quick", "")).ok()
	c.post(maps, configMap("quicker", "")).ok()
	require.Zero(t, gauge(c, `apiserver_current_inflight_requests{request_kind="mutating"}`))
}

// Bodies in memory are bounded, for one user and for all.
func TestBodiesInMemoryAreBounded(t *testing.T) {
	cluster, c := start(t)
	scheduler := schedulerWithAllRights(t, cluster, c)
	release := make(chan struct{})
	answers := make(chan int, 40)
	for i := range 40 { // of nearly 3 MiB each: more than 64 MiB
		body := io.MultiReader(strings.NewReader(`{"metadata":{"name":"big`+fmt.Sprint(i)+`"},"data":{"a":"`), bytes.NewReader(bytes.Repeat([]byte("x"), 2900<<10)), waitFor(release))
		request, err := http.NewRequestWithContext(t.Context(), "POST", scheduler.base+maps, body)
		require.NoError(t, err)
		go func() {
			response, err := scheduler.http.Do(request)
			if err != nil {
				answers <- 0
				return
			}
			response.Body.Close()
			answers <- response.StatusCode
		}()
	}
	require.Equal(t, http.StatusTooManyRequests, <-answers)
	require.LessOrEqual(t, gauge(c, "kontiki_request_body_bytes"), 64<<20)
	c.post(maps, configMap("other", "")).ok()
	close(release)
	for range 39 {
		<-answers
	}
	require.Eventually(t, func() bool { return gauge(c, "kontiki_request_body_bytes") == 0 }, time.Minute, 10*time.Millisecond)
}

// waitFor is a reader that ends when release is closed.
func waitFor(release <-chan struct{}) io.Reader {
	return readerFunc(func([]byte) (int, error) { <-release; return 0, io.EOF })
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
