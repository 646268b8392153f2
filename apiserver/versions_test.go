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

// Who owns what is known across versions: an owner of one version's fields keeps them when the other version is written.
func TestOwnersAcrossVersions(t *testing.T) {
	_, c := start(t)
	const v1, v2 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	applied := func(version, metrics string) string {
		return `{"apiVersion":"autoscaling/` + version + `","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,
			"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},` + metrics + `}}`
	}
	old := applied("v1", `"targetCPUUtilizationPercentage":50`)
	c.patch(v1+"/h?fieldManager=old", applyPatch, old).ok()
	c.patch(v2+"/h?fieldManager=new", mergePatch, `{"spec":{"minReplicas":2}}`).ok()
	owners := map[string]string{}
	for _, entry := range c.get(v2 + "/h").ok().object().GetManagedFields() {
		owners[entry.Manager] = entry.APIVersion
	}
	require.Equal(t, map[string]string{"old": "autoscaling/v1", "new": "autoscaling/v2"}, owners)

	c.patch(v2+"/h?fieldManager=other", applyPatch, applied("v2", `"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}}]`)).
		fails(409, "Conflict", `conflict with "old"`)
	again := c.patch(v1+"/h?fieldManager=old", applyPatch, old).ok()
	require.Equal(t, c.get(v1+"/h").resourceVersion(), again.resourceVersion())
	c.patch(v1+"/h?fieldManager=old", applyPatch, applied("v1", `"minReplicas":4`)).fails(409, "Conflict", `conflict with "new"`)
}
