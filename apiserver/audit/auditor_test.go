package audit

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func gather(t *testing.T, a *Auditor) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(a.Collectors()...)
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

func TestNothingIsAudited(t *testing.T) {
	a, err := Open(Config{Policy: DefaultPolicy()})
	require.NoError(t, err)
	require.Nil(t, a, "there is no sink")
	record := a.Begin(httptest.NewRequest("GET", "/", nil), &Request{}, "id", time.Now())
	require.Nil(t, record)
	require.NoError(t, record.Received())
	record.RequestMeta(&metav1.ObjectMeta{})
	record.RequestBody(nil)
	record.ResponseBody(nil)
	record.Started(200)
	record.Panicked()
	record.Completed(200)
	require.NoError(t, a.Close())
}

// TestStages walks a record through all that can be said of a request.
func TestStages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	policy, err := ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request}]"))
	require.NoError(t, err)
	a, err := Open(Config{Policy: policy, File: &FileConfig{Path: path, Mode: ModeBatch}})
	require.NoError(t, err)
	request := httptest.NewRequest("POST", "/api/v1/namespaces/a/pods", nil)
	request.Header.Set("User-Agent", strings.Repeat("x", 2000))
	request.Header.Set("X-Forwarded-For", "10.0.0.1, 10.0.0.2")
	record := a.Begin(request, &Request{Verb: "create", Version: "v1", Resource: "pods", Namespace: "a"}, "id", time.Now())
	require.NoError(t, record.Received())
	record.RequestMeta(&metav1.ObjectMeta{Name: "n", Namespace: "other", UID: "u", ResourceVersion: "7"})
	record.RequestBody([]byte(`{"a": 1}`))
	record.ResponseBody([]byte(`{"b": 1}`))
	record.Started(200)
	record.Started(201)
	record.Panicked()
	require.NoError(t, a.Close())

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var events []auditv1.Event
	for line := range strings.Lines(string(data)) {
		var e auditv1.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		events = append(events, e)
	}
	require.Len(t, events, 3)
	require.Equal(t, []string{"10.0.0.1", "10.0.0.2", "192.0.2.1"}, events[0].SourceIPs)
	require.Len(t, events[0].UserAgent, maxUserAgentBytes+len("...TRUNCATED"))
	require.Equal(t, auditv1.StageResponseStarted, events[1].Stage)
	require.Equal(t, int32(200), events[1].ResponseStatus.Code)
	last := events[2]
	require.Equal(t, auditv1.StagePanic, last.Stage)
	require.Equal(t, int32(500), last.ResponseStatus.Code)
	require.Equal(t, auditv1.ObjectReference{Resource: "pods", APIVersion: "v1", Namespace: "a", Name: "n", UID: "u", ResourceVersion: "7"}, *last.ObjectRef)
	require.JSONEq(t, `{"a":1}`, string(last.RequestObject.Raw))
	require.Nil(t, last.ResponseObject, "not at this level")
}

// TestURLsWithoutSecrets: a log of URLs is no place for what was in them.
func TestURLsWithoutSecrets(t *testing.T) {
	for given, want := range map[string]string{
		"/a?watch=true&limit=5":              "/a?watch=true&limit=5",
		"/a?continue=abc":                    "/a?continue=abc",
		"/a?access_token=s3cr3t&x=1":         "/a?access_token=REDACTED&x=1",
		"/a?Pass%77ord=s3cr3t":               "/a?Pass%77ord=REDACTED",
		"http://u:s3cr3t@host/a?x=1":         "/a?x=1",
		"/a?x;client_secret=s3cr3t":          "/a?x&client_secret=REDACTED",
		"/a?token":                           "/a?token",
		"/a?fieldSelector=metadata.name%3Dx": "/a?fieldSelector=metadata.name%3Dx",
	} {
		require.Equal(t, want, requestURI(httptest.NewRequest("GET", given, nil), &Request{}))
	}
	proxied := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/p/proxy/login?user=me&key=s3cr3t", nil)
	require.Equal(t, "/api/v1/namespaces/a/pods/p/proxy/login?user=REDACTED&key=REDACTED", requestURI(proxied, &Request{Subresource: "proxy"}))
}
