package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCurl does what the README shows: create, list, watch and delete with nothing but curl.
func TestCurl(t *testing.T) {
	n := shared(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on PATH")
	}
	ns := namespace(t, n)
	pki := filepath.Join(n.dataDir, "pki")
	curl := func(args ...string) *exec.Cmd {
		return exec.Command("curl", append([]string{"-sS", "--cacert", filepath.Join(pki, "ca.crt"),
			"--cert", filepath.Join(pki, "admin.crt"), "--key", filepath.Join(pki, "admin.key")}, args...)...)
	}
	configMaps := n.url("/api/v1/namespaces/" + ns + "/configmaps")

	watch := curl("-N", configMaps+"?watch=1&fieldSelector=metadata.name=c")
	stream, err := watch.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, watch.Start())
	defer func() { _ = watch.Process.Kill(); _ = watch.Wait() }()

	out, err := curl("-H", "Content-Type: application/json", "-d",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"v"}}`, configMaps).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), `"uid":`)
	out, err = curl(configMaps).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), `"kind": "ConfigMapList"`)
	out, err = curl("-X", "DELETE", configMaps+"/c").CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), `"status": "Success"`)

	var types []string
	scanner := bufio.NewScanner(stream)
	for len(types) < 2 && scanner.Scan() {
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		require.NoError(t, json.Unmarshal(scanner.Bytes(), &event))
		require.Equal(t, "c", event.Object.Metadata.Name)
		types = append(types, event.Type)
	}
	require.Equal(t, []string{"ADDED", "DELETED"}, types)
}

// TestNoCertificateNoResources: without a client certificate only health and version answer.
func TestNoCertificateNoResources(t *testing.T) {
	n := shared(t)
	client := n.http(t, false)
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 200, "/healthz": 200, "/version": 200,
		"/api/v1/pods": 401, "/api/v1/namespaces/default/secrets": 401, "/metrics": 401, "/apis/apps/v1/deployments": 401,
	} {
		resp, err := client.Get(n.url(path))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode, path)
	}
	plain, err := http.Get("http://127.0.0.1:" + fmt.Sprint(n.httpsPort) + "/api/v1/pods")
	if err == nil {
		plain.Body.Close()
		require.NotEqual(t, 200, plain.StatusCode, "plain HTTP is not served")
	}
}

// TestBadInput sends what nobody should and checks code and reason; the server stays up.
func TestBadInput(t *testing.T) {
	n := shared(t)
	ns := namespace(t, n)
	path := "/api/v1/namespaces/" + ns + "/configmaps"
	object := func(s string) []byte { return []byte(s) }
	code, stale := n.do(t, "POST", path, "application/json", object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old"}}`))
	require.Equal(t, 201, code)
	code, _ = n.do(t, "PATCH", path+"/old", "application/merge-patch+json", object(`{"data":{"a":"b"}}`))
	require.Equal(t, 200, code)

	big := append([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"k":"`), bytes.Repeat([]byte("x"), 10<<20)...)
	big = append(big, `"}}`...)
	for _, c := range []struct {
		name, method, path, contentType string
		body                            []byte
		code                            int
		reason                          string
	}{
		{"malformed JSON", "POST", path, "application/json", object(`{"apiVersion": "v1", `), 400, "BadRequest"},
		{"empty body", "POST", path, "application/json", nil, 400, "BadRequest"},
		{"unknown kind", "POST", path, "application/json", object(`{"apiVersion":"v1","kind":"Nonsense","metadata":{"name":"x"}}`), 400, "BadRequest"},
		{"wrong kind for the path", "POST", path, "application/json", object(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`), 400, "BadRequest"},
		{"wrong apiVersion", "POST", path, "application/json", object(`{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}`), 400, "BadRequest"},
		{"missing name", "POST", path, "application/json", object(`{"apiVersion":"v1","kind":"ConfigMap"}`), 422, "Invalid"},
		{"bad name", "POST", path, "application/json", object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A_b"}}`), 422, "Invalid"},
		{"other namespace in the body", "POST", path, "application/json", object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"elsewhere"}}`), 400, "BadRequest"},
		{"exists", "POST", path, "application/json", object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old"}}`), 409, "AlreadyExists"},
		{"stale resourceVersion", "PUT", path + "/old", "application/json", object(stale), 409, "Conflict"},
		{"no such object", "GET", path + "/nobody", "", nil, 404, "NotFound"},
		{"no such namespace", "POST", "/api/v1/namespaces/nowhere/configmaps", "application/json", object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`), 404, "NotFound"},
		{"no such resource", "GET", "/api/v1/namespaces/" + ns + "/nonsense", "", nil, 404, "NotFound"},
		{"no such group", "GET", "/apis/nonsense.example/v1/things", "", nil, 404, "NotFound"},
		{"unknown media type", "POST", path, "application/x-nonsense", object(`{}`), 415, "UnsupportedMediaType"},
		{"unknown patch type", "PATCH", path + "/old", "application/json", object(`{}`), 415, "UnsupportedMediaType"},
		{"a 10 MiB body", "POST", path, "application/json", big, 413, "RequestEntityTooLarge"},
		{"bad label selector", "GET", path + "?labelSelector=a%3D%3D%3Db", "", nil, 400, "BadRequest"},
		{"bad field selector", "GET", path + "?fieldSelector=spec.nonsense%3Dx", "", nil, 400, "BadRequest"},
		{"bad continue token", "GET", path + "?limit=1&continue=nonsense", "", nil, 400, "BadRequest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body := n.do(t, c.method, c.path, c.contentType, c.body)
			require.Equal(t, c.code, code, body)
			var status struct{ Kind, Reason, Message string }
			require.NoError(t, json.Unmarshal([]byte(body), &status), body)
			require.Equal(t, "Status", status.Kind)
			require.Equal(t, c.reason, status.Reason, status.Message)
			require.NotEmpty(t, status.Message)
		})
	}
	code, body := n.do(t, "GET", "/readyz", "", nil)
	require.Equal(t, 200, code, body)
}
