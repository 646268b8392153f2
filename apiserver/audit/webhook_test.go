package audit

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// receiver is a real server for a webhook. It answers with codes, the last one again and again.
type receiver struct {
	t     *testing.T
	codes []int
	calls atomic.Int64
	lists chan auditv1.EventList
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	n := int(r.calls.Add(1)) - 1
	code := r.codes[min(n, len(r.codes)-1)]
	if request.URL.Path != "/events" || request.Method != http.MethodPost || request.Header.Get("Authorization") != "Bearer letmein" {
		code = http.StatusForbidden
	}
	body, err := io.ReadAll(request.Body)
	var list auditv1.EventList
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		r.t.Errorf("not a list: %v", err)
	}
	w.WriteHeader(code)
	if code < 300 {
		r.lists <- list
	}
}

// startReceiver starts a TLS server and returns the path of its kubeconfig.
func startReceiver(t *testing.T, codes ...int) (*receiver, string) {
	t.Helper()
	r := &receiver{t: t, codes: codes, lists: make(chan auditv1.EventList, 100)}
	server := httptest.NewTLSServer(r)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["hook"] = &clientcmdapi.Cluster{Server: server.URL + "/events",
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "letmein"}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "hook", AuthInfo: "me"}
	config.CurrentContext = "it"
	path := filepath.Join(t.TempDir(), "hook.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return r, path
}

func openTestWebhook(t *testing.T, path string, mode Mode) *Auditor {
	t.Helper()
	config, err := LoadWebhook(path)
	require.NoError(t, err)
	a, err := Open(Config{Webhook: &WebhookConfig{REST: config, InitialBackoff: time.Millisecond, Mode: mode, Batch: BatchConfig{MaxWait: time.Hour}}})
	require.NoError(t, err)
	return a
}

func (a *Auditor) say(t *testing.T, id string) *Record {
	t.Helper()
	record := a.Begin(httptest.NewRequest("GET", "/api/v1/pods", nil), &Request{Verb: "list", Resource: "pods"}, id, time.Now())
	require.NotNil(t, record)
	return record
}

func TestWebhookGetsBatches(t *testing.T) {
	r, path := startReceiver(t, 500, 429, 200)
	a := openTestWebhook(t, path, ModeBatch)
	for _, id := range []string{"a", "b", "c"} {
		a.say(t, id).Completed(200)
	}
	require.NoError(t, a.Close())
	list := <-r.lists
	require.Equal(t, "EventList audit.k8s.io/v1", list.Kind+" "+list.APIVersion)
	require.Len(t, list.Items, 3)
	require.Equal(t, "c", string(list.Items[2].AuditID))
	require.Equal(t, auditv1.StageResponseComplete, list.Items[2].Stage)
	require.Equal(t, int64(3), r.calls.Load(), "after two failures")
	require.Zero(t, counted(t, a, "apiserver_audit_error_total"))
	require.Equal(t, 3.0, counted(t, a, "apiserver_audit_event_total"))
}

func TestWebhookThatRefuses(t *testing.T) {
	r, path := startReceiver(t, 400)
	a := openTestWebhook(t, path, ModeBlocking)
	a.say(t, "a").Completed(200)
	require.Equal(t, int64(1), r.calls.Load(), "it would say the same again")
	require.Equal(t, 1.0, counted(t, a, "apiserver_audit_error_total"))
	require.NoError(t, a.Close())
}

// counted adds up a counter's values.
func counted(t *testing.T, a *Auditor, name string) (sum float64) {
	t.Helper()
	for _, family := range gather(t, a) {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestWebhookThatIsDown(t *testing.T) {
	r, path := startReceiver(t, 503)
	a := openTestWebhook(t, path, ModeBlockingStrict)
	record := a.say(t, "a")
	record.decision.OmitStages = nil
	require.ErrorContains(t, record.Received(), "503", "a strict sink refuses the request")
	require.Equal(t, int64(webhookAttempts), r.calls.Load())
	require.Equal(t, 1.0, counted(t, a, "apiserver_audit_requests_rejected_total"))
	require.NoError(t, a.Close())
}

// TestWebhookStops: whoever stops the server does not wait for the backoff.
func TestWebhookStops(t *testing.T) {
	_, path := startReceiver(t, 503)
	config, err := LoadWebhook(path)
	require.NoError(t, err)
	h, err := openWebhook(WebhookConfig{REST: config, InitialBackoff: time.Hour})
	require.NoError(t, err)
	failed := make(chan error)
	go func() { failed <- h.write([][]byte{[]byte("{}")}) }()
	require.NoError(t, h.close())
	require.Error(t, <-failed)
}

func TestLoadWebhook(t *testing.T) {
	_, err := LoadWebhook(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "bad")
	require.NoError(t, os.WriteFile(path, []byte("a: ["), 0o600))
	_, err = LoadWebhook(path)
	require.ErrorContains(t, err, path)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "audit.example"}
	config.Contexts["x"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c"}, "x"
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	_, err = LoadWebhook(path)
	require.ErrorContains(t, err, "URL")
}
