package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/internal/controlplane"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// encrypted is a server whose secrets are encrypted, with a file that a test rewrites.
type encrypted struct {
	*testcluster.Cluster
	*client
	path string
}

// startEncrypted starts a server that writes secrets with key one.
func startEncrypted(t *testing.T) *encrypted {
	t.Helper()
	e := &encrypted{path: filepath.Join(t.TempDir(), "encryption.yaml")}
	e.keys(t, "one")
	e.Cluster = testcluster.StartWith(t, func(c *controlplane.Config) { c.Encryption.Path = e.path })
	e.client = clientFor(t, e.REST(pki.Admin))
	return e
}

// keys makes the server, once it is restarted, write secrets with the first key and read them with all.
func (e *encrypted) keys(t *testing.T, names ...string) {
	t.Helper()
	var keys []string
	for _, name := range names {
		secret := base64.StdEncoding.EncodeToString([]byte((strings.Repeat(name, 32))[:32]))
		keys = append(keys, "{name: "+name+", secret: "+secret+"}")
	}
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- {resources: [secrets], providers: [{aesgcm: {keys: [" + strings.Join(keys, ", ") + "]}}, {identity: {}}]}\n"
	require.NoError(t, os.WriteFile(e.path, []byte(text), 0o600))
}

// with restarts the server with other keys.
func (e *encrypted) with(t *testing.T, keys ...string) {
	t.Helper()
	e.keys(t, keys...)
	e.Restart()
}

// writtenWith is the prefix of a secret in the store.
func (e *encrypted) writtenWith(name string) string {
	stored := string(e.Stored("/registry/secrets/default/" + name))
	parts := strings.SplitAfterN(stored, ":", 6) // what follows may have a colon, too
	return strings.Join(parts[:min(5, len(parts))], "")
}

const sealedPath = "/api/v1/namespaces/default/secrets"

// TestSecretsAtRest walks through docs/secrets-at-rest.md: a key, another one, all secrets written again, the first key gone.
func TestSecretsAtRest(t *testing.T) {
	e := startEncrypted(t)
	created := e.post(sealedPath, `{"metadata":{"name":"s"},"stringData":{"password":"open-sesame"}}`).ok()
	require.Equal(t, "k8s:enc:aesgcm:v1:one:", e.writtenWith("s"))
	require.NotContains(t, string(e.Stored("/registry/secrets/default/s")), "sesame")
	e.post("/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"c"},"data":{"k":"readable"}}`).ok()
	require.Contains(t, string(e.Stored("/registry/configmaps/default/c")), "readable")

	same := e.put(sealedPath+"/s", string(created.body)).ok()
	require.Equal(t, created.resourceVersion(), same.resourceVersion(), "a write that changes nothing writes nothing")
	patched := e.patch(sealedPath+"/s", mergePatch, `{"stringData":{"user":"ali"}}`).ok()
	require.Equal(t, "YWxp", patched.object().Object["data"].(map[string]any)["user"])

	e.with(t, "two", "one")
	require.Contains(t, string(e.get(sealedPath+"/s").ok().body), base64.StdEncoding.EncodeToString([]byte("open-sesame")))
	require.Equal(t, "k8s:enc:aesgcm:v1:one:", e.writtenWith("s"))
	frames := e.watch(sealedPath + "?watch=true&timeoutSeconds=5&resourceVersion=" + patched.resourceVersion())
	again := e.put(sealedPath+"/s", string(patched.body)).ok()
	require.Equal(t, "k8s:enc:aesgcm:v1:two:", e.writtenWith("s"), "written again, it has the new key")
	require.NotEqual(t, patched.resourceVersion(), again.resourceVersion())
	frame := <-frames
	require.Equal(t, "MODIFIED:s", frame.String())
	require.Equal(t, "YWxp", frame.Object.Object["data"].(map[string]any)["user"])
	require.Equal(t, again.resourceVersion(), e.put(sealedPath+"/s", string(again.body)).ok().resourceVersion(), "once is enough")

	past := e.get(sealedPath + "/s?resourceVersionMatch=Exact&resourceVersion=" + created.resourceVersion()).ok()
	require.NotContains(t, past.object().Object["data"], "user")
	require.Contains(t, string(e.get(sealedPath+"/s/history").ok().body), `"data.user"`)

	e.with(t, "two")
	require.Equal(t, again.resourceVersion(), e.get(sealedPath+"/s").ok().resourceVersion())
	require.Len(t, e.get(sealedPath).ok().object().Object["items"], 1)
	e.get(sealedPath+"/s?resourceVersionMatch=Exact&resourceVersion="+created.resourceVersion()).
		fails(500, "InternalError", "aesgcm:v1:one")
	e.delete(sealedPath+"/s", "").ok()
}

// TestMissingKey: what cannot be decrypted is an error that names it; it is not left out, and it is in nobody else's way.
func TestMissingKey(t *testing.T) {
	e := startEncrypted(t)
	e.post(sealedPath, `{"metadata":{"name":"old"},"stringData":{"a":"b"}}`).ok()
	e.with(t, "two")
	e.post(sealedPath, `{"metadata":{"name":"new"},"stringData":{"a":"b"}}`).ok()
	e.get(sealedPath + "/new").ok()
	for _, answer := range []answer{e.get(sealedPath + "/old"), e.get(sealedPath), e.get(sealedPath + "?labelSelector=a=b"),
		e.patch(sealedPath+"/old", mergePatch, `{"stringData":{"a":"c"}}`)} {
		answer.fails(500, "InternalError", "/registry/secrets/default/old")
		require.Contains(t, string(answer.body), "aesgcm:v1:one")
	}
	for frame := range e.watch(sealedPath + "?watch=true&timeoutSeconds=1") {
		if frame.Type == "ERROR" {
			require.Contains(t, frame.Object.Object["message"], "/registry/secrets/default/old")
		}
	}
	e.get("/api/v1/namespaces/default/configmaps").ok()
	e.with(t, "two", "one")
	require.Len(t, e.get(sealedPath).ok().object().Object["items"], 2)
}

// TestKubectlReplaceRotates runs the command that docs/secrets-at-rest.md gives.
func TestKubectlReplaceRotates(t *testing.T) {
	e := startEncrypted(t)
	for _, name := range []string{"a", "b", "c"} {
		e.post(sealedPath, `{"metadata":{"name":"`+name+`"},"stringData":{"a":"b"}}`).ok()
	}
	e.with(t, "two", "one")
	all, code := kubectl(e.Cluster, "get", "secrets", "-A", "-o", "json")
	require.Zero(t, code, all)
	path := filepath.Join(t.TempDir(), "all.json")
	require.NoError(t, os.WriteFile(path, []byte(all), 0o600))
	said, code := kubectl(e.Cluster, "replace", "-f", path)
	require.Zero(t, code, said)
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, "k8s:enc:aesgcm:v1:two:", e.writtenWith(name))
	}
	var list struct{ Items []json.RawMessage }
	require.NoError(t, json.Unmarshal(e.get(sealedPath).ok().body, &list))
	require.Len(t, list.Items, 3)
}
