package apiserver_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"kontiki/apiserver/audit"
	"kontiki/internal/controlplane"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// auditLog is the audit log of a test's server.
type auditLog struct {
	t    testing.TB
	path string
}

// startAudited starts a server that records what policy says.
func startAudited(t testing.TB, policy string) (*testcluster.Cluster, *client, auditLog) {
	t.Helper()
	parsed, err := audit.ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n" + policy))
	require.NoError(t, err)
	log := auditLog{t, filepath.Join(t.TempDir(), "audit.log")}
	cluster := testcluster.StartWith(t, func(c *controlplane.Config) {
		c.Audit = audit.Config{Policy: parsed, File: &audit.FileConfig{Path: log.path, Mode: audit.ModeBlocking}}
	})
	return cluster, clientFor(t, cluster.REST(pki.Admin)), log
}

// events returns the events of a request, which has been answered, as soon as there are n.
func (l auditLog) events(id string, n int) (found []auditv1.Event) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		found = nil
		file, err := os.Open(l.path)
		require.NoError(l.t, err)
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var event auditv1.Event
			require.NoError(l.t, json.Unmarshal(lines.Bytes(), &event), lines.Text())
			if string(event.AuditID) == id {
				found = append(found, event)
			}
		}
		return len(found) >= n
	}, 10*time.Second, 10*time.Millisecond, "%d events of request %s", n, id)
	require.Len(l.t, found, n)
	return found
}

// last returns the last of a request's n events.
func (l auditLog) last(id string, n int) auditv1.Event {
	l.t.Helper()
	return l.events(id, n)[n-1]
}

func stagesOf(events []auditv1.Event) (stages []auditv1.Stage) {
	for _, e := range events {
		stages = append(stages, e.Stage)
	}
	return stages
}

const auditPolicy = `
rules:
- level: None
  resources: [{group: "", resources: [endpoints]}]
- level: Request
  omitManagedFields: true
  resources: [{group: "", resources: [services, pods]}]
- level: RequestResponse
  omitManagedFields: true
  omitStages: [RequestReceived]
  resources: [{group: "", resources: [limitranges]}]
- level: Metadata
`

func TestAuditEvents(t *testing.T) {
	cluster, admin, log := startAudited(t, auditPolicy)
	const configMaps = "/api/v1/namespaces/default/configmaps"

	t.Run("metadata", func(t *testing.T) {
		answer := admin.do("POST", configMaps+"?fieldManager=me", `{"metadata":{"name":"c"},"data":{"k":"hidden"}}`, "Audit-Id", "m1", "User-Agent", "tester/1")
		require.Equal(t, "m1", answer.ok().header.Get("Audit-Id"))
		events := log.events("m1", 2)
		require.Equal(t, []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseComplete}, stagesOf(events))
		e := events[1]
		require.Equal(t, "Event audit.k8s.io/v1 Metadata create", strings.Join([]string{e.Kind, e.APIVersion, string(e.Level), e.Verb}, " "))
		require.Equal(t, configMaps+"?fieldManager=me", e.RequestURI)
		require.Contains(t, e.User.Groups, "system:masters")
		require.Equal(t, []string{"127.0.0.1"}, e.SourceIPs)
		require.Equal(t, "tester/1", e.UserAgent)
		require.Equal(t, auditv1.ObjectReference{Resource: "configmaps", Namespace: "default", Name: "c", APIVersion: "v1"}, *e.ObjectRef)
		require.Equal(t, int32(201), e.ResponseStatus.Code)
		require.Equal(t, map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}, e.Annotations)
		require.Nil(t, e.RequestObject)
		require.Nil(t, e.ResponseObject)
		require.False(t, e.StageTimestamp.Before(&e.RequestReceivedTimestamp))
		require.Nil(t, events[0].ResponseStatus)
	})
	t.Run("none", func(t *testing.T) {
		admin.get("/api/v1/endpoints", "Audit-Id", "n1").ok()
		admin.get(configMaps, "Audit-Id", "n2").ok()
		log.events("n2", 2)
		log.events("n1", 0)
	})
	t.Run("request", func(t *testing.T) {
		admin.do("POST", "/api/v1/namespaces/default/services", `{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`, "Audit-Id", "r1").ok()
		e := log.last("r1", 2)
		require.JSONEq(t, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"},"spec":{"ports":[{"port":80,"targetPort":0}]},"status":{"loadBalancer":{}}}`,
			string(e.RequestObject.Raw), "as it was sent: no defaults")
		require.Nil(t, e.ResponseObject)

		patch := `{"metadata":{"labels":{"a":"b"}}}`
		admin.do("PATCH", "/api/v1/namespaces/default/services/s", patch, "Content-Type", mergePatch, "Audit-Id", "r2").ok()
		require.JSONEq(t, patch, string(log.last("r2", 2).RequestObject.Raw))
		admin.do("DELETE", "/api/v1/namespaces/default/services/s", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground"}`, "Audit-Id", "r3").ok()
		e = log.last("r3", 2)
		require.JSONEq(t, `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground"}`, string(e.RequestObject.Raw))
		require.Equal(t, "delete", e.Verb)
	})
	t.Run("response", func(t *testing.T) {
		const ranges = "/api/v1/namespaces/default/limitranges"
		body := `{"kind":"LimitRange","apiVersion":"v1","metadata":{"name":"l"},"spec":{"limits":[]}}`
		created := admin.do("POST", ranges, body, "Audit-Id", "b1").ok().object()
		e := log.last("b1", 1)
		require.Contains(t, string(e.ResponseObject.Raw), created.GetUID())
		require.NotContains(t, string(e.ResponseObject.Raw), "managedFields")
		for id, accept := range map[string]string{"b2": "application/yaml", "b3": "application/vnd.kubernetes.protobuf", "b4": "application/cbor"} {
			admin.get(ranges, "Accept", accept, "Audit-Id", id).ok()
			list := string(log.last(id, 1).ResponseObject.Raw)
			require.Contains(t, list, `"kind":"LimitRangeList"`, accept)
			require.Contains(t, list, created.GetUID(), accept)
			require.NotContains(t, list, "managedFields", accept)
		}
	})
	t.Run("watch", func(t *testing.T) {
		frames := admin.watch(configMaps+"?watch=true&timeoutSeconds=1", "Audit-Id", "w1")
		for range frames {
		}
		events := log.events("w1", 3)
		require.Equal(t, []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseStarted, auditv1.StageResponseComplete}, stagesOf(events))
		require.Equal(t, "watch", events[0].Verb)
		require.Equal(t, int32(200), events[1].ResponseStatus.Code)
	})
	t.Run("errors", func(t *testing.T) {
		require.Equal(t, 404, admin.get(configMaps+"/none", "Audit-Id", "e1").code)
		e := log.last("e1", 2)
		require.Equal(t, `configmaps "none" not found`, e.ResponseStatus.Message)
		require.EqualValues(t, "NotFound", e.ResponseStatus.Reason)
		require.Equal(t, 404, admin.get("/apis/nothing.example/v1/things", "Audit-Id", "e2").code)
		require.Equal(t, "things", log.last("e2", 2).ObjectRef.Resource)
	})
	t.Run("impersonation", func(t *testing.T) {
		require.Equal(t, 403, admin.get(configMaps, "Impersonate-User", "jane", "Impersonate-Group", "dev", "Audit-Id", "i1").code)
		e := log.last("i1", 2)
		require.NotEqual(t, "jane", e.User.Username)
		require.Equal(t, "jane", e.ImpersonatedUser.Username)
		require.Contains(t, e.ImpersonatedUser.Groups, "dev")
		require.Equal(t, "forbid", e.Annotations["authorization.k8s.io/decision"])
		require.EqualValues(t, "Forbidden", e.ResponseStatus.Reason)
	})
	t.Run("strangers", func(t *testing.T) {
		config := cluster.REST(pki.Admin)
		config.CertData, config.KeyData = nil, nil
		stranger := clientFor(t, config)
		require.Equal(t, 401, stranger.get(configMaps, "Audit-Id", "s1").code)
		e := log.last("s1", 2)
		require.Empty(t, e.User.Username)
		require.Equal(t, "Authentication failed, no credentials provided", e.ResponseStatus.Message)
		require.Equal(t, 200, stranger.get("/livez", "Audit-Id", "s3").code)
		require.Equal(t, "system:anonymous", log.last("s3", 2).User.Username)
		require.Equal(t, 401, stranger.get(configMaps, "Authorization", "Bearer made-up", "Audit-Id", "s2").code)
		e = log.last("s2", 2)
		require.Empty(t, e.User.Username)
		require.Equal(t, "Authentication failed, attempted: bearer", e.ResponseStatus.Message)
	})
	t.Run("reasons", func(t *testing.T) {
		node := clientFor(t, cluster.NodeREST("n1"))
		require.Equal(t, 403, node.get("/api/v1/namespaces/default/secrets/x", "Audit-Id", "y1").code)
		e := log.last("y1", 2)
		require.Equal(t, "system:node:n1", e.User.Username)
		require.NotEmpty(t, e.Annotations["authorization.k8s.io/reason"])
	})
	t.Run("own ids", func(t *testing.T) {
		given := admin.get(configMaps, "Audit-Id", strings.Repeat("x", 100)).header.Get("Audit-Id")
		require.Len(t, given, 36, "one that is too long is replaced")
		log.events(given, 2)
	})
	t.Run("metrics", func(t *testing.T) {
		page := string(admin.get("/metrics").body)
		require.Contains(t, page, `apiserver_audit_level_total{level="RequestResponse"} 4`)
		require.NotContains(t, page, "apiserver_audit_event_total 0")
	})
}
