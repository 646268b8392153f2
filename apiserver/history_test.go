package apiserver_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver"
	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/etcdtest"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

func historyOf(t *testing.T, c *client, path string) apiserver.ObjectHistory {
	t.Helper()
	var h apiserver.ObjectHistory
	require.NoError(t, json.Unmarshal(c.get(path).ok().body, &h))
	require.Equal(t, "ObjectHistory", h.Kind)
	return h
}

// write makes a history of four revisions: created, changed, deleted, and made again by somebody else.
func write(t *testing.T, cluster *testcluster.Cluster, c *client) {
	t.Helper()
	c.do("POST", maps+"?fieldManager=tester", configMap("a", `"labels":{"x":"1"}`), "User-Agent", "first/1.0", "Audit-Id", "the-first").ok()
	c.patch(maps+"/a?fieldManager=patcher", mergePatch, `{"data":{"k":"w","new":"n"}}`).ok()
	c.post(maps, configMap("other", "")).ok()
	c.delete(maps+"/a", "").ok()
	schedulerWithAllRights(t, cluster, c).post(maps, configMap("a", "")).ok()
}

func types(h apiserver.ObjectHistory) (out []string) {
	for _, item := range h.Items {
		out = append(out, item.Type)
	}
	return out
}

func TestHistory(t *testing.T) {
	cluster, c := start(t)
	write(t, cluster, c)
	h := historyOf(t, c, maps+"/a/history?objects=true")
	require.Equal(t, []string{"ADDED", "MODIFIED", "DELETED", "ADDED"}, types(h))
	require.False(t, h.Truncated)
	require.Zero(t, h.CompactedRevision)
	first, second, third, last := h.Items[0], h.Items[1], h.Items[2], h.Items[3]
	require.Equal(t, []string{"kubernetes-admin", "first/1.0", "the-first", "tester", "Update", "raft"},
		[]string{first.User, first.UserAgent, first.RequestID, first.Manager, first.Operation, first.TimeFrom})
	require.NotZero(t, first.RaftIndex)
	require.NotNil(t, first.Time)
	require.Equal(t, "patcher", second.Manager)
	require.Len(t, second.Changes, 2)
	require.Equal(t, `~ data.k: "v" → "w"`, second.Changes[0].String())
	require.Equal(t, `+ data.new: "n"`, second.Changes[1].String())
	require.Equal(t, "kubernetes-admin", third.User)
	require.Empty(t, third.Object)
	require.Equal(t, "system:kube-scheduler", last.User)
	require.Greater(t, last.RaftIndex, second.RaftIndex)

	// Every revision that is listed can be read.
	then := c.get(fmt.Sprintf("%s/a?resourceVersion=%d&resourceVersionMatch=Exact", maps, second.Revision)).ok()
	require.JSONEq(t, string(second.Object), string(then.body))
	c.get(fmt.Sprintf("%s/a?resourceVersion=%d&resourceVersionMatch=Exact", maps, third.Revision)).fails(404, metav1.StatusReasonNotFound, "")

	h = historyOf(t, c, maps+"/a/history?limit=2")
	require.Equal(t, []string{"DELETED", "ADDED"}, types(h))
	require.True(t, h.Truncated)
	require.Equal(t, []string{"ADDED"}, types(historyOf(t, c, "/api/v1/namespaces/default/history")))
	c.get(maps+"/none/history").fails(404, metav1.StatusReasonNotFound, `configmaps "none" not found`)
	c.get(maps+"/a/history?limit=x").fails(400, metav1.StatusReasonBadRequest, "limit")
	c.put(maps+"/a/history", "{}").fails(405, metav1.StatusReasonMethodNotAllowed, "")

	cluster.Compact(fmt.Sprint(last.Revision))
	h = historyOf(t, c, maps+"/a/history")
	require.Equal(t, []string{"ADDED"}, types(h))
	require.Equal(t, last.Revision, h.CompactedRevision)
	gone := c.get(fmt.Sprintf("%s/a?resourceVersion=%d&resourceVersionMatch=Exact", maps, second.Revision))
	gone.fails(410, metav1.StatusReasonExpired, fmt.Sprintf("%d (%d)", second.Revision, last.Revision))
	causes := map[metav1.CauseType]string{}
	for _, cause := range gone.status().Details.Causes {
		causes[cause.Type] = cause.Message
	}
	require.Equal(t, fmt.Sprint(second.Revision), causes["RequestedRevision"])
	require.Equal(t, fmt.Sprint(last.Revision), causes["CompactedRevision"])
	require.NotEmpty(t, causes["CurrentRevision"])
	require.Contains(t, causes["HistoryRetention"], "history is kept")
}

// An etcd has the versions, and no place for who asked: the field managers are known.
func TestHistoryOnEtcd(t *testing.T) {
	cluster := testcluster.StartOn(t, etcd.Config{Endpoints: []string{etcdtest.Start(t).URL()}})
	c := clientFor(t, cluster.REST(pki.Admin))
	write(t, cluster, c)
	h := historyOf(t, c, maps+"/a/history")
	require.Equal(t, []string{"ADDED", "MODIFIED", "DELETED", "ADDED"}, types(h))
	require.Equal(t, "patcher", h.Items[1].Manager)
	require.Equal(t, "managedFields", h.Items[1].TimeFrom)
	require.Empty(t, h.Items[1].User)
	require.Len(t, h.Items[1].Changes, 2)
	cluster.Compact(fmt.Sprint(h.Items[1].Revision))
	h = historyOf(t, c, maps+"/a/history")
	require.Equal(t, []string{"MODIFIED", "DELETED", "ADDED"}, types(h))
	require.True(t, h.Truncated)
	require.Empty(t, h.Items[0].Changes)
}
