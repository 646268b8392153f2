package apiserver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const pods = "/api/v1/namespaces/default/pods"

// pod is the JSON of a pod on a node that does not exist: nobody ends it but the test.
func pod(name, meta string) string {
	if meta != "" {
		meta = "," + meta
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q%s},"spec":{"nodeName":"nowhere","containers":[{"name":"c","image":"i"}]}}`, name, meta)
}

func options(fields string) string {
	return `{"kind":"DeleteOptions","apiVersion":"v1",` + fields + `}`
}

func TestDeleteAnswers(t *testing.T) {
	_, c := start(t)
	made := c.post(maps, configMap("c", "")).ok().object()
	status := c.delete(maps+"/c", "").ok().status()
	require.Equal(t, metav1.StatusSuccess, status.Status)
	require.Equal(t, &metav1.StatusDetails{Name: "c", Kind: "configmaps", UID: made.GetUID()}, status.Details)
	require.Equal(t, 404, c.get(maps+"/c").code)

	c.post("/api/v1/namespaces/default/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"s"}}`).ok()
	require.Equal(t, "ServiceAccount", c.delete("/api/v1/namespaces/default/serviceaccounts/s", "").ok().object().GetKind())
}

// TestAP35_DeletePreconditions: a mismatch leaves the object alone.
func TestAP35_DeletePreconditions(t *testing.T) {
	_, c := start(t)
	for _, finalizers := range []string{"", `"finalizers":["example.com/f"]`} {
		old := c.post(maps, configMap("c", finalizers)).ok()
		now := c.patch(maps+"/c", mergePatch, `{"data":{"k":"2"}}`).ok()
		uid, rv := string(old.object().GetUID()), now.resourceVersion()
		c.delete(maps+"/c", options(`"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}`)).fails(409, metav1.StatusReasonConflict, "UID")
		c.delete(maps+"/c", options(`"preconditions":{"resourceVersion":"`+old.resourceVersion()+`"}`)).fails(409, metav1.StatusReasonConflict, "ResourceVersion")
		require.JSONEq(t, string(now.body), string(c.get(maps+"/c").body), "untouched")
		c.delete(maps+"/c", options(`"preconditions":{"uid":"`+uid+`","resourceVersion":"`+rv+`"}`)).ok()
		if finalizers != "" {
			require.NotNil(t, c.get(maps+"/c").object().GetDeletionTimestamp())
			c.patch(maps+"/c", mergePatch, `{"metadata":{"finalizers":null}}`).ok()
		}
		require.Equal(t, 404, c.get(maps+"/c").code)
	}
}

// TestAP36_Finalizers: they hold the object, none can be added, and the last one lets it go.
func TestAP36_Finalizers(t *testing.T) {
	_, c := start(t)
	c.post(maps, configMap("c", `"finalizers":["example.com/f","example.com/h"]`)).ok()
	frames := c.watch(maps + "?watch=1&fieldSelector=metadata.name%3Dc&resourceVersion=" + c.get(maps).resourceVersion())
	first := c.delete(maps+"/c", "").ok().object()
	require.NotNil(t, first.GetDeletionTimestamp())
	require.Equal(t, "MODIFIED:c", c.next(frames).String())

	c.patch(maps+"/c", mergePatch, `{"metadata":{"finalizers":["example.com/f","example.com/h","example.com/g"]}}`).fails(422, metav1.StatusReasonInvalid, "no new finalizers can be added")
	c.patch(maps+"/c", jsonPatch, `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/g"}]`).fails(422, metav1.StatusReasonInvalid, "no new finalizers can be added")
	c.patch(maps+"/c", mergePatch, `{"metadata":{"deletionTimestamp":null}}`).ok()
	require.Equal(t, first.GetDeletionTimestamp(), c.get(maps+"/c").object().GetDeletionTimestamp())
	require.Equal(t, first.GetResourceVersion(), c.delete(maps+"/c", "").ok().resourceVersion(), "a second delete changes nothing")
	c.patch(maps+"/c", mergePatch, `{"metadata":{"finalizers":["example.com/f"]}}`).ok()
	c.patch(maps+"/c", mergePatch, `{"metadata":{"finalizers":null}}`).ok()
	require.Equal(t, 404, c.get(maps+"/c").code)
	require.Equal(t, []string{"MODIFIED:c", "DELETED:c"}, c.take(frames, 2))
	c.post(maps, configMap("n", `"finalizers":["nodomain"]`)).fails(422, metav1.StatusReasonInvalid, "neither a standard finalizer")
}

// The propagation policy becomes a finalizer that the garbage collector works off.
func TestCascade(t *testing.T) {
	_, c := start(t)
	for policy, finalizer := range map[string]string{"Orphan": "orphan", "Foreground": "foregroundDeletion"} {
		c.post(maps, configMap("c", "")).ok()
		require.Equal(t, []string{finalizer}, c.delete(maps+"/c", options(`"propagationPolicy":"`+policy+`"`)).ok().object().GetFinalizers())
		c.patch(maps+"/c", mergePatch, `{"metadata":{"finalizers":null}}`).ok()
	}
	c.post(maps, configMap("c", "")).ok()
	c.delete(maps+"/c", options(`"propagationPolicy":"Background"`)).ok()
	require.Equal(t, 404, c.get(maps+"/c").code)
	c.post(maps, configMap("q", "")).ok()
	require.Equal(t, []string{"orphan"}, c.delete(maps+"/q?propagationPolicy=Orphan", "").ok().object().GetFinalizers(), "in the query")
}

// Jobs orphan their pods unless the client says otherwise, and tell one that says nothing.
func TestOrphanByDefault(t *testing.T) {
	_, c := start(t)
	const jobs = "/apis/batch/v1/namespaces/default/jobs"
	job := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
	c.post(jobs, job).ok()
	open := c.delete(jobs+"/j", "").ok()
	require.Equal(t, []string{"orphan"}, open.object().GetFinalizers())
	require.Contains(t, open.header.Get("Warning"), "child pods are preserved by default")
	c.patch(jobs+"/j", mergePatch, `{"metadata":{"finalizers":null}}`).ok()
	c.post(jobs, job).ok()
	said := c.delete(jobs+"/j?propagationPolicy=Background", "").ok()
	require.Equal(t, "Status", said.object().GetKind())
	require.Empty(t, said.header.Get("Warning"))
}

// A pod on a node has its grace, which can only get shorter; its node ends it with grace 0.
func TestGrace(t *testing.T) {
	_, c := start(t)
	c.post(pods, pod("p", "")).ok()
	grace := func(fields string) int64 {
		t.Helper()
		c.delete(pods+"/p", options(fields)).ok()
		return *c.get(pods + "/p").ok().object().GetDeletionGracePeriodSeconds()
	}
	require.EqualValues(t, 30, grace(`"gracePeriodSeconds":30`))
	require.EqualValues(t, 30, grace(`"gracePeriodSeconds":60`))
	require.EqualValues(t, 5, grace(`"gracePeriodSeconds":5`))
	c.delete(pods+"/p", options(`"gracePeriodSeconds":0`)).ok()
	require.Equal(t, 404, c.get(pods+"/p").code)

	c.post(pods, pod("e", "")).ok()
	evicted := c.post(pods+"/e/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"e"}}`)
	require.Equal(t, 201, evicted.code, string(evicted.body))
	require.NotNil(t, c.get(pods+"/e").object().GetDeletionTimestamp())
}

// A pod that has no grace is marked before it goes, so that watchers see the deletion begin.
func TestDeleteWithoutGrace(t *testing.T) {
	_, c := start(t)
	made := c.post(pods, pod("p", "")).ok()
	events := c.watch(pods + "?watch=true&resourceVersion=" + made.resourceVersion())
	gone := c.delete(pods+"/p", options(`"gracePeriodSeconds":0`)).ok().object()
	require.NotNil(t, gone.GetDeletionTimestamp())
	require.EqualValues(t, 2, gone.GetGeneration())
	require.Equal(t, []string{"MODIFIED:p", "DELETED:p"}, c.take(events, 2))
}

// TestTakenByTheDying: a name is free again when its object is gone, and the refusal says so.
func TestTakenByTheDying(t *testing.T) {
	_, c := start(t)
	c.post(maps, configMap("c", `"finalizers":["example.com/f"]`)).ok()
	c.post(maps, configMap("c", "")).fails(409, metav1.StatusReasonAlreadyExists, `configmaps "c" already exists`)
	c.delete(maps+"/c", "").ok()
	c.post(maps, configMap("c", "")).fails(409, metav1.StatusReasonAlreadyExists, `object is being deleted: configmaps "c" already exists`)
}

func TestDeleteCollection(t *testing.T) {
	_, c := start(t)
	for i := range 5 {
		c.post(maps, configMap(fmt.Sprintf("x%d", i), `"labels":{"a":"b"}`)).ok()
	}
	c.post(maps, configMap("other", "")).ok()
	c.delete(maps+"?labelSelector=a%3Db", options(`"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}`)).fails(409, metav1.StatusReasonConflict, "UID")
	answer := c.delete(maps+"?labelSelector=a%3Db", "").ok().object()
	require.Equal(t, "ConfigMapList", answer.GetKind())
	require.Len(t, answer.Object["items"], 5)
	require.Len(t, c.get(maps).object().Object["items"], 1)
}

// TestAP40_NamespaceTerminating: nothing new comes into a namespace that is going away, and it goes
// when it has been finalized.
func TestAP40_NamespaceTerminating(t *testing.T) {
	_, c := start(t)
	const path = "/api/v1/namespaces/n"
	c.post("/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`).ok()
	deleted := c.delete(path, "").ok().object()
	require.Equal(t, "Terminating", deleted.Object["status"].(map[string]any)["phase"])
	for _, refused := range []answer{
		c.post(path+"/configmaps", configMap("late", "")),
		c.patch(path+"/configmaps/late?fieldManager=m", applyPatch, configMap("late", "")),
	} {
		refused.fails(403, metav1.StatusReasonForbidden, "because it is being terminated")
		require.Equal(t, metav1.CauseType("NamespaceTerminating"), refused.status().Details.Causes[0].Type)
	}
	deleted.Object["spec"] = map[string]any{}
	body, err := deleted.MarshalJSON()
	require.NoError(t, err)
	c.put(path+"/finalize", string(body)).ok()
	require.Equal(t, 404, c.get(path).code)
	c.post(path+"/configmaps", configMap("late", "")).fails(404, metav1.StatusReasonNotFound, `namespaces "n" not found`)
}

// A deletecollection with a limit deletes a page, and says where the next one begins.
func TestDeleteCollectionInPages(t *testing.T) {
	_, c := start(t)
	for _, name := range []string{"a", "b", "c"} {
		c.post(maps, configMap(name, `"labels":{"l":"1"}`)).ok()
	}
	page := c.delete(maps+"?labelSelector=l%3D1&limit=2", "").ok()
	require.Contains(t, string(page.body), `"continue":"`)
	c.get(maps+"/b").fails(404, metav1.StatusReasonNotFound, "")
	c.get(maps + "/c").ok()
}
