package apiserver_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver"
	"kontiki/internal/pki"
	"kontiki/raftstore"
)

// Any server goes on with a list that another one has begun, at the revision of its first page.
func TestContinueTokensOnAnyServer(t *testing.T) {
	store, serve := sharedStore(t)
	a, b := serve(), serve()
	for _, name := range []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6"} {
		a.post(maps, configMap(name, "")).ok()
	}
	first := pageOf(a, "")
	require.Equal(t, []string{"s0", "s1", "s2"}, first.names)

	b.delete(maps+"/s4", "").ok()
	b.post(maps, configMap("s3-new", "")).ok()
	a.patch(maps+"/s5", mergePatch, `{"data":{"k":"changed"}}`).ok()

	for _, server := range []*client{b, a, serve()} {
		second := pageOf(server, first.next)
		require.Equal(t, []string{"s3", "s4", "s5"}, second.names)
		require.Equal(t, first.revision, second.revision)
		require.NotContains(t, second.body, "changed")
		require.EqualValues(t, 1, second.remaining)
		for _, other := range []*client{a, b} {
			last := pageOf(other, second.next)
			require.Equal(t, []string{"s6"}, last.names)
			require.Equal(t, first.revision, last.revision)
			require.Empty(t, last.next)
		}
	}

	// A server that has seen none of what the store has forgotten gives a token for the rest as it is now, which is of use
	// on every server.
	revision, err := strconv.ParseInt(a.get(maps).ok().resourceVersion(), 10, 64)
	require.NoError(t, err)
	require.NoError(t, store.Compact(t.Context(), revision))
	gone := serve().get(maps + "?limit=3&continue=" + first.next)
	gone.fails(410, metav1.StatusReasonExpired, "continue")
	for _, server := range []*client{a, b} {
		rest := pageOf(server, gone.status().Continue)
		require.Equal(t, []string{"s3", "s3-new", "s5"}, rest.names)
		require.Contains(t, rest.body, "changed")
		for _, other := range []*client{a, b} {
			last := pageOf(other, rest.next)
			require.Equal(t, []string{"s6"}, last.names)
			require.Equal(t, rest.revision, last.revision)
		}
	}
}

// sharedStore opens a store, and serve starts one more server on it.
func sharedStore(t *testing.T) (store *raftstore.Member, serve func() *client) {
	dir := t.TempDir()
	keys, err := pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	store, err = raftstore.Open(raftstore.Config{Dir: dir + "/store", NodeID: "n", Bootstrap: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store, func() *client {
		config, stop := serveOn(t, store, keys, apiserver.Config{})
		t.Cleanup(stop)
		return clientFor(t, config)
	}
}

// page is one of three items of the list of ConfigMaps.
type page struct {
	names          []string
	revision, next string
	remaining      int64
	body           string
}

func pageOf(c *client, token string) page {
	c.t.Helper()
	answer := c.get(maps + "?limit=3&continue=" + token).ok()
	list := answer.object()
	out := page{revision: list.GetResourceVersion(), next: list.GetContinue(), body: string(answer.body)}
	if left := list.GetRemainingItemCount(); left != nil {
		out.remaining = *left
	}
	for _, item := range list.Object["items"].([]any) {
		out.names = append(out.names, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
	}
	return out
}
