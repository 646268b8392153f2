package apiserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Appliers share lists by key and sets by value; what is atomic belongs to one of them.
func TestListTypesInApply(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", `"crew":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"job":{"type":"string"}}}},
		"flags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},"route":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"string"}},
		"hull":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"length":{"type":"integer"},"width":{"type":"integer"}}}`)).ok()
	apply := func(manager, spec string) answer {
		return c.patch(boats+"/a?fieldManager="+manager, applyPatch, boat("a", `,"spec":{`+spec+`}`))
	}
	apply("one", `"crew":[{"name":"thor","job":"captain"}],"flags":["no"],"route":["lima"],"hull":{"length":14}`).ok()
	shared := apply("two", `"crew":[{"name":"bengt","job":"steward"}],"flags":["pe"]`).ok().object().Object["spec"].(map[string]any)
	require.Len(t, shared["crew"], 2)
	require.Equal(t, []any{"no", "pe"}, shared["flags"])
	apply("two", `"crew":[{"name":"thor","job":"cook"}]`).fails(409, metav1.StatusReasonConflict, `.spec.crew[name="thor"].job`)
	apply("two", `"route":["callao"]`).fails(409, metav1.StatusReasonConflict, ".spec.route")
	apply("two", `"hull":{"width":6}`).fails(409, metav1.StatusReasonConflict, ".spec.hull")
	require.Len(t, apply("one", `"flags":["no"]`).ok().object().Object["spec"].(map[string]any)["crew"], 1, "thor was of the first one alone")
	c.patch(boats+"/a", mergePatch, `{"spec":{"crew":[{"name":"x"},{"name":"x"}],"flags":["a","a"]}}`).fails(422, metav1.StatusReasonInvalid, "Duplicate value")
}

// A transition rule with optionalOldSelf judges what is new as well.
func TestRulesWithoutAnOldObject(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", `"speed":{"type":"integer","x-kubernetes-validations":[
		{"rule":"oldSelf.hasValue() ? self >= oldSelf.value() : self == 1","optionalOldSelf":true,"messageExpression":"'never slower'","reason":"FieldValueForbidden"}]}`)).ok()
	c.post(boats, boat("a", `,"spec":{"speed":3}`)).fails(422, metav1.StatusReasonInvalid, "spec.speed: Forbidden: never slower")
	c.post(boats, boat("a", `,"spec":{"speed":1}`)).ok()
	c.patch(boats+"/a", mergePatch, `{"spec":{"speed":5}}`).ok()
	c.patch(boats+"/a", mergePatch, `{"spec":{"speed":4}}`).fails(422, metav1.StatusReasonInvalid, "never slower")
	c.patch(boats+"/a", mergePatch, `{"spec":{"speed":null}}`).ok()
	c.patch(boats+"/a", mergePatch, `{"spec":{"speed":2}}`).fails(422, metav1.StatusReasonInvalid, "never slower")
}

// Scope, group and names in the path stay; without a status subresource the status counts as a wish.
func TestWhatDefinitionsKeep(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", `"masts":{"type":"integer"}`)).ok()
	for path, value := range map[string]string{"/spec/scope": `"Cluster"`, "/spec/group": `"example.org"`, "/spec/names/plural": `"barks"`, "/spec/names/kind": `"Bark"`} {
		c.patch(definitionsPath+"/boats.example.com", jsonPatch, fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, path, value)).
			fails(422, metav1.StatusReasonInvalid, "field is immutable")
	}
	c.post(boats, boat("a", `,"status":{"wet":true}`)).ok()
	dry := c.patch(boats+"/a", mergePatch, `{"status":{"wet":false}}`).ok().object()
	require.EqualValues(t, 2, dry.GetGeneration())
	require.EqualValues(t, 2, c.patch(boats+"/a", mergePatch, `{"metadata":{"annotations":{"a":"b"}}}`).ok().object().GetGeneration())
	c.patch(boats+"/a/status", mergePatch, `{}`).fails(404, metav1.StatusReasonNotFound, "")
}

// A status may have a default, as that of the Gateway API; it is there before any controller has come.
func TestDefaultOfAStatus(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, strings.Replace(boatDefinition(`"subresources":{"status":{}},`, ""), `"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}`,
		`"status":{"type":"object","default":{"conditions":[{"type":"Afloat","status":"Unknown"}]},"properties":{"conditions":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"status":{"type":"string"}}}}}}`, 1)).ok()
	want := map[string]any{"conditions": []any{map[string]any{"type": "Afloat", "status": "Unknown"}}}
	require.Equal(t, want, c.post(boats, boat("a", `,"status":{"conditions":[{"type":"Afloat","status":"True"}]}`)).ok().object().Object["status"])
	require.Equal(t, want, c.get(boats + "/a").ok().object().Object["status"])
}

// What documents say of a resource decides how kubectl apply patches it.
func TestDocumentsNameThePatchTypes(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", "")).ok()
	soon(t, func() bool { return c.get("/openapi/v3/apis/example.com/v1").code == 200 })
	require.NotContains(t, string(c.get("/openapi/v3/apis/example.com/v1").ok().body), "application/strategic-merge-patch+json")
	require.Contains(t, string(c.get("/openapi/v3/api/v1").ok().body), "application/strategic-merge-patch+json")
}

// Selectable fields choose what a watch shows, and what a deletion of many takes.
func TestSelectableFieldsEverywhere(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition(`"selectableFields":[{"jsonPath":".spec.flag"},{"jsonPath":".spec.masts"}],`, `"flag":{"type":"string"},"masts":{"type":"integer"}`)).ok()
	first := c.post(boats, boat("a", `,"spec":{"flag":"no","masts":1}`)).ok().object().GetResourceVersion()
	events := c.watch(boats + "?watch=true&fieldSelector=spec.flag%3Dpe&resourceVersion=" + first)
	c.post(boats, boat("b", `,"spec":{"flag":"pe","masts":2}`)).ok()
	require.Equal(t, "ADDED", c.next(events).Type)
	c.patch(boats+"/a", mergePatch, `{"spec":{"flag":"pe"}}`).ok()
	require.Equal(t, "ADDED", c.next(events).Type, "what comes to be chosen is new to the watch")
	c.patch(boats+"/b", mergePatch, `{"spec":{"flag":"no"}}`).ok()
	require.Equal(t, "DELETED", c.next(events).Type, "and what is no longer chosen has gone")
	require.Equal(t, "b", listed(c, boats, "fieldSelector", "spec.masts=2"))
	c.delete(boats+"?fieldSelector=spec.flag%3Dpe", "").ok()
	require.Equal(t, "b", listed(c, boats, "limit", "9"))
	c.delete(boats+"?fieldSelector=spec.name%3Dx", "").fails(400, metav1.StatusReasonBadRequest, "field label not supported: spec.name")
}

// Versions that are not served are not there; those that are deprecated say so, in their own words or the server's.
func TestVersionsAndAdvice(t *testing.T) {
	_, c := start(t)
	version := func(name, more string) string {
		return `{"name":"` + name + `","storage":false,` + more + `"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},`
	}
	c.post(definitionsPath, strings.Replace(boatDefinition("", ""), `"versions":[`, `"versions":[`+
		version("v0", `"served":false,`)+version("v1beta1", `"served":true,"deprecated":true,`)+version("v1alpha1", `"served":true,"deprecated":true,"deprecationWarning":"row no more",`), 1)).ok()
	path := func(version string) string { return strings.Replace(boats, "/v1/", "/"+version+"/", 1) }
	for _, version := range []string{"v0", "v9"} {
		c.get(path(version)).fails(404, metav1.StatusReasonNotFound, "")
		c.get("/apis/example.com/"+version).fails(404, metav1.StatusReasonNotFound, "")
	}
	require.Equal(t, `299 - "row no more"`, c.get(path("v1alpha1")).header.Get("Warning"))
	require.Equal(t, `299 - "example.com/v1beta1 Boat is deprecated; use example.com/v1 Boat"`, c.get(path("v1beta1")).header.Get("Warning"))
	require.Empty(t, c.get(boats).ok().header.Get("Warning"))

	c.patch(definitionsPath+"/boats.example.com", jsonPatch, `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`).ok()
	soon(t, func() bool { return c.get(path("v1beta1")).code == 404 })
	c.get(path("v1alpha1")).ok()
}
