package apiserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// secondVersion adds a version v2, that is served and not stored, to a definition of boats.
func secondVersion(definition, specProperties string) string {
	second := `{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",` + specProperties + `}}}}},`
	return strings.Replace(definition, `"versions":[`, `"versions":[`+second, 1)
}

const boatsV2 = "/apis/example.com/v2/namespaces/default/boats"

// specOf is the spec of a boat as a path shows it.
func specOf(c *client, path string) map[string]any {
	c.t.Helper()
	spec, _ := c.get(path).ok().object().Object["spec"].(map[string]any)
	return spec
}

// What a body lacks, the version of the request fills in; what an object in the store lacks, the version that it is
// stored in, whichever is asked for. So a default that is younger than an object is seen in it.
func TestDefaultsOnRead(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, secondVersion(boatDefinition("", `"masts":{"type":"integer"},"sails":{"type":"integer"},"oars":{"type":"integer"}`),
		`"properties":{"masts":{"type":"integer"},"sails":{"type":"integer","default":9},"oars":{"type":"integer"}}`)).ok()
	c.post(boats, boat("old", `,"spec":{}`)).ok()
	asV2 := strings.Replace(boat("new", `,"spec":{}`), "/v1", "/v2", 1)
	require.Equal(t, map[string]any{"sails": int64(9)}, c.post(boatsV2, asV2).ok().object().Object["spec"], "the default of the request")
	require.Empty(t, specOf(c, boatsV2+"/old"), "that of a version which is not stored is for bodies alone")

	c.patch(definitionsPath+"/boats.example.com", jsonPatch, `[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/masts/default","value":2}]`).ok()
	soon(t, func() bool { return specOf(c, boats+"/old")["masts"] == int64(2) })
	require.Equal(t, map[string]any{"masts": int64(2)}, specOf(c, boatsV2+"/old"))
	require.Equal(t, map[string]any{"masts": int64(2), "sails": int64(9)}, specOf(c, boats+"/new"))
	later := strings.Replace(asV2, `"new"`, `"later"`, 1)
	require.Equal(t, map[string]any{"masts": int64(2), "sails": int64(9)}, c.post(boatsV2, later).ok().object().Object["spec"], "what is answered is what was stored")
	require.Equal(t, map[string]any{"masts": int64(2), "sails": int64(9)}, c.do("POST", boatsV2+"?dryRun=All", strings.Replace(asV2, `"new"`, `"dry"`, 1)).ok().object().Object["spec"])
}

// Finalizers without a path are unwise, and common: they are warned of where built-in kinds refuse them.
func TestFinalizersOfCustomResources(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", "")).ok()
	held := c.post(boats, `{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"held","finalizers":["finalizer.example.com"]}}`)
	require.Equal(t, []string{"finalizer.example.com"}, held.ok().object().GetFinalizers())
	require.Contains(t, held.header.Get("Warning"), "prefer a domain-qualified finalizer name including a path (/)")
	label := c.patch(boats+"/held", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`)
	label.ok()
	require.Empty(t, label.header.Get("Warning"), "what is there already is not warned of again")
	c.patch(boats+"/held", mergePatch, `{"metadata":{"finalizers":["bad name"]}}`).fails(422, metav1.StatusReasonInvalid, "metadata.finalizers")
	c.delete(boats+"/held", "").ok()
	require.NotNil(t, c.get(boats+"/held").ok().object().GetDeletionTimestamp())
	c.patch(boats+"/held", mergePatch, `{"metadata":{"finalizers":null}}`).ok()
	c.get(boats+"/held").fails(404, metav1.StatusReasonNotFound, "")
}

// A rule that what is stored breaks already, and that the change does not concern, is told of in a warning.
func TestRulesThatAreYoungerThanObjects(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, secondVersion(boatDefinition("", `"name":{"type":"string"},"masts":{"type":"integer"}`),
		`"properties":{"masts":{"type":"integer"},"name":{"type":"string","x-kubernetes-validations":[{"rule":"self.startsWith('a')","message":"it starts with a"}]}}`)).ok()
	c.post(boats, boat("a", `,"spec":{"name":"Ra"}`)).ok()
	changed := c.patch(boatsV2+"/a", mergePatch, `{"spec":{"masts":2}}`)
	changed.ok()
	require.Contains(t, changed.header.Get("Warning"), "it starts with a")
	c.patch(boatsV2+"/a", mergePatch, `{"spec":{"name":"Ra II"}}`).fails(422, metav1.StatusReasonInvalid, "it starts with a")
	require.Empty(t, c.patch(boatsV2+"/a", mergePatch, `{"spec":{"name":"anchor"}}`).header.Get("Warning"))
}

// Whoever reads a list of custom resources finds the kind in each of them, in every form.
func TestItemsOfCustomListsNameTheirKind(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", "")).ok()
	for _, name := range []string{"a", "b"} {
		c.post(boats, boat(name, "")).ok()
	}
	kinds := func(list map[string]any) (out []string) {
		for _, item := range list["items"].([]any) {
			m := item.(map[string]any)
			out = append(out, fmt.Sprint(m["apiVersion"], " ", m["kind"], " ", m["metadata"].(map[string]any)["name"]))
		}
		return out
	}
	want := []string{"example.com/v1 Boat a", "example.com/v1 Boat b"}
	require.Equal(t, want, kinds(c.get(boats).ok().object().Object))
	require.Equal(t, want, kinds(c.get(boats+"?pretty=true").ok().object().Object))
	var list map[string]any
	require.NoError(t, direct.Unmarshal(c.get(boats, "Accept", "application/cbor").ok().body, &list))
	require.Equal(t, want, kinds(list))
	c.post(maps, configMap("plain", "")).ok()
	require.NotContains(t, c.get(maps).ok().object().Object["items"].([]any)[0], "kind", "those of built-in kinds do not")
}

// Autoscalers write a Scale with the revision that they have read, or without any.
func TestScaleWithoutARevision(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition(`"subresources":{"scale":{"specReplicasPath":".spec.crew","statusReplicasPath":".status.crew"}},`, `"crew":{"type":"integer","maximum":9}`)).ok()
	c.post(boats, boat("a", `,"spec":{"crew":1}`)).ok()
	scale := func(more string, crew int) answer {
		return c.put(boats+"/a/scale", fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"default"%s},"spec":{"replicas":%d}}`, more, crew))
	}
	scale("", 4).ok()
	require.EqualValues(t, 4, specOf(c, boats+"/a")["crew"])
	scale(`,"resourceVersion":"1"`, 5).fails(409, metav1.StatusReasonConflict, "")
	scale("", 10).fails(422, metav1.StatusReasonInvalid, "spec.crew")
	require.EqualValues(t, 4, specOf(c, boats+"/a")["crew"])
}

// Groups of Kubernetes need its approval, and a faulty schema ends in an answer, whatever else refers to it.
func TestDefinitionsThatAreRefused(t *testing.T) {
	_, c := start(t)
	theirs := strings.ReplaceAll(boatDefinition("", ""), "example.com", "sails.k8s.io")
	c.post(definitionsPath, theirs).fails(422, metav1.StatusReasonInvalid, `metadata.annotations[api-approved.kubernetes.io]: Required value`)
	approved := strings.Replace(theirs, `"metadata":{`, `"metadata":{"annotations":{"api-approved.kubernetes.io":"https://github.com/kubernetes/enhancements/pull/1111"},`, 1)
	require.Contains(t, fmt.Sprint(c.post(definitionsPath, approved).ok().object().Object["status"]), "KubernetesAPIApprovalPolicyConformant")
	c.post(definitionsPath, boatDefinition(`"selectableFields":[{"jsonPath":".spec.name"}],`, `"name":{"type":"string"},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":false}`)).
		fails(422, metav1.StatusReasonInvalid, "must be true or undefined")
}

// soon waits for what another goroutine of the server does once it has heard of a change.
func soon(t *testing.T, happens func() bool) {
	t.Helper()
	require.Eventually(t, happens, time.Minute, 5*time.Millisecond)
}
