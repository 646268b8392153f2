package apiserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Another version is stored from now on: older objects are read as they are and rewritten by whoever writes them. The
// status remembers the old version, which cannot go, until somebody says that nothing is stored in it any more.
func TestStoredVersions(t *testing.T) {
	cluster, c := start(t)
	const raw, status = "/registry/example.com/boats/default/a", definitionsPath + "/boats.example.com/status"
	masts := `"properties":{"masts":{"type":"integer"}}`
	c.post(definitionsPath, secondVersion(boatDefinition("", `"masts":{"type":"integer"}`), masts)).ok()
	c.post(boats, boat("a", `,"spec":{"masts":1}`)).ok()
	require.Contains(t, string(cluster.Stored(raw)), `"example.com/v1"`)

	changed := c.patch(definitionsPath+"/boats.example.com", jsonPatch, `[{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}]`)
	require.Equal(t, []any{"v1", "v2"}, changed.ok().object().Object["status"].(map[string]any)["storedVersions"])
	// This server stores in v2 as soon as it has heard of the change, which the first new object shows.
	soon(t, func() bool {
		c.post(boats, boat("new", "")).ok()
		stored := string(cluster.Stored("/registry/example.com/boats/default/new"))
		c.delete(boats+"/new", "").ok()
		return strings.Contains(stored, `"example.com/v2"`)
	})
	require.Contains(t, string(cluster.Stored(raw)), `"example.com/v1"`)
	for _, path := range []string{boats, boatsV2} {
		require.Equal(t, map[string]any{"masts": int64(1)}, specOf(c, path+"/a"))
		require.Equal(t, "a", listed(c, path, "limit", "5"))
	}

	const away = `[{"op":"remove","path":"/spec/versions/1"}]`
	c.patch(definitionsPath+"/boats.example.com", jsonPatch, away).fails(422, metav1.StatusReasonInvalid, `status.storedVersions[0]: Invalid value: "v1": missing from spec.versions`)

	written := c.get(boats + "/a").ok()
	again := c.put(boats+"/a", string(written.body)).ok().object()
	require.NotEqual(t, written.object().GetResourceVersion(), again.GetResourceVersion(), "the same object in another version is another value")
	require.Contains(t, string(cluster.Stored(raw)), `"example.com/v2"`)
	require.Equal(t, again.GetResourceVersion(), c.put(boats+"/a", string(c.get(boats+"/a").ok().body)).ok().object().GetResourceVersion(), "and now it is the same value")

	c.patch(status, mergePatch, `{"status":{"storedVersions":["v2"]}}`).ok()
	c.patch(definitionsPath+"/boats.example.com", jsonPatch, away).ok()
	soon(t, func() bool { return c.get(boats).code == 404 })
	require.Equal(t, map[string]any{"masts": int64(1)}, specOf(c, boatsV2+"/a"))
}
