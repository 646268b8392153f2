package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Events are one kind under two groups: what is written in one is read, watched and changed in the other.
func TestEventsInTwoGroups(t *testing.T) {
	_, c := start(t)
	const core, group = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
	seen := c.watch(core + "?watch=1&resourceVersion=" + c.get(core).resourceVersion())
	c.post(group, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"eventTime":"2026-01-02T03:04:05.000006Z",
		"reportingController":"example.com/c","reportingInstance":"i","action":"Act","reason":"Why","type":"Normal","note":"hello",
		"regarding":{"apiVersion":"v1","kind":"Pod","name":"p","namespace":"default"}}`).ok()
	first := c.next(seen)
	require.Equal(t, "ADDED:e", first.String())
	require.Equal(t, "hello", first.Object.Object["message"])
	require.Equal(t, "v1", first.Object.GetAPIVersion())

	c.patch(core+"/e?fieldManager=other", mergePatch, `{"message":"changed","count":2}`).ok()
	changed := c.get(group + "/e").ok().object()
	require.Equal(t, "changed", changed.Object["note"])
	require.Equal(t, "events.k8s.io/v1", changed.GetAPIVersion())
	require.Equal(t, "MODIFIED:e", c.next(seen).String())
	require.Contains(t, string(c.get(core+"?fieldSelector=involvedObject.name%3Dp,involvedObject.kind%3DPod").ok().body), `"changed"`)
	require.NotContains(t, string(c.get(core+"?fieldSelector=involvedObject.name%3Dq").ok().body), `"changed"`)
	c.delete(core+"/e", "").ok()
	require.Equal(t, 404, c.get(group+"/e").code)
}
