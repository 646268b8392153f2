package apiserver_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AP-13 of custom resources: the generation counts changes of what is wished for.
func TestAP13_GenerationOfCustomResources(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition(`"subresources":{"status":{}},`, `"masts":{"type":"integer"}`)).ok()
	generation := func(a answer) int64 { t.Helper(); return a.ok().object().GetGeneration() }
	require.EqualValues(t, 1, generation(c.post(boats, boat("b", `,"spec":{"masts":1}`))))
	require.EqualValues(t, 1, generation(c.patch(boats+"/b", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`)))
	require.EqualValues(t, 1, generation(c.patch(boats+"/b/status", mergePatch, `{"status":{"wet":true}}`)))
	require.EqualValues(t, 2, generation(c.patch(boats+"/b", mergePatch, `{"spec":{"masts":2}}`)))
	require.EqualValues(t, 2, generation(c.patch(boats+"/b", mergePatch, `{"spec":{"masts":2}}`)))
	through := c.patch(boats+"/b", mergePatch, `{"status":{"wet":false}}`).ok().object()
	require.Equal(t, map[string]any{"wet": true}, through.Object["status"])
	label := c.patch(boats+"/b/status", mergePatch, `{"metadata":{"labels":{"a":"c"}},"spec":{"masts":5}}`).ok().object()
	require.Equal(t, map[string]string{"a": "b"}, label.GetLabels())
	require.EqualValues(t, 2, label.Object["spec"].(map[string]any)["masts"])

	c.put(boats+"/b", boat("b", `,"spec":{"masts":3}`)).fails(422, metav1.StatusReasonInvalid, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
}

// AP-14 of custom resources: their own columns, the same in lists and watches.
func TestAP14_ColumnsOfCustomResources(t *testing.T) {
	cluster, c := start(t)
	c.post(definitionsPath, boatDefinition(`"additionalPrinterColumns":[
		{"name":"Masts","type":"integer","jsonPath":".spec.masts"},
		{"name":"Captain","type":"string","jsonPath":".spec.captain"},
		{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"},
		{"name":"Built","type":"date","jsonPath":".spec.built"},
		{"name":"Wide","type":"string","priority":1,"jsonPath":".spec.captain"}],`,
		`"masts":{"type":"integer"},"captain":{"type":"string"},"built":{"type":"string","format":"date-time"}`)).ok()
	c.post(boats, boat("a", `,"spec":{"masts":2,"captain":"Thor","built":"2020-01-01T00:00:00Z"},"status":{"conditions":[{"type":"Ready","status":"True"}]}`)).ok()
	c.post(boats, boat("b", "")).ok()
	table := c.get(boats, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").ok().object()
	var names []string
	for _, column := range table.Object["columnDefinitions"].([]any) {
		names = append(names, column.(map[string]any)["name"].(string))
	}
	require.Equal(t, []string{"Name", "Masts", "Captain", "Ready", "Built", "Wide"}, names)
	eachKubectl(t, func(t *testing.T, run runKubectl) {
		out, code := run(cluster, "get", "boats", "--chunk-size=1")
		require.Zero(t, code, out)
		require.Regexp(t, `NAME +MASTS +CAPTAIN +READY +BUILT\na +2 +Thor +True +\d+y\d+d\nb +`, out)
		out, code = run(cluster, "get", "bt", "a", "-o", "wide")
		require.Zero(t, code, out)
		require.Regexp(t, `NAME +MASTS +CAPTAIN +READY +BUILT +WIDE\na +2 +Thor +True +\d+y\d+d +Thor`, out)
	})
}

// AP-43: what is dropped, what is kept, and what becomes of numbers.
func TestAP43_Pruning(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", `
		"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"known":{"type":"object","properties":{"x":{"type":"string"}}}}},
		"list":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
		"port":{"x-kubernetes-int-or-string":true},"maybe":{"type":"string","nullable":true},"never":{"type":"string"},
		"inner":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"items":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"size":{"type":"integer","default":7}}}},
		"big":{"type":"integer","format":"int64"},"real":{"type":"number"}`)).ok()
	spec := c.post(boats, boat("a", `,"spec":{"unknown":1,"any":{"more":{"deep":[1]},"known":{"x":"y","z":1}},"list":[{"free":1}],"port":"http","maybe":null,"never":null,
		"inner":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","wrong":1},"spec":{"free":true}},"items":[{"name":"one","odd":1},{"size":1}],
		"big":9007199254740993,"real":1.0},"extra":1`)).ok().object().Object["spec"].(map[string]any)
	require.Equal(t, map[string]any{
		"any": map[string]any{"more": map[string]any{"deep": []any{int64(1)}}, "known": map[string]any{"x": "y"}}, "list": []any{map[string]any{"free": int64(1)}},
		"port": "http", "maybe": nil, "inner": map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": map[string]any{"free": true}},
		"items": []any{map[string]any{"name": "one", "size": int64(7)}, map[string]any{"size": int64(1)}}, "big": int64(9007199254740993), "real": int64(1),
	}, spec)
	c.do("POST", boats+"?fieldValidation=Strict", boat("b", `,"spec":{"unknown":1}`)).fails(400, metav1.StatusReasonBadRequest, `strict decoding error: unknown field "spec.unknown"`)
	c.patch(boats+"/a?fieldValidation=Strict", mergePatch, `{"spec":{"unknown":1}}`).fails(422, metav1.StatusReasonInvalid, `unknown field "spec.unknown"`)
}

// AP-49: discovery and OpenAPI follow, and kubectl validates and explains.
func TestAP49_DiscoveryFollows(t *testing.T) {
	cluster, c := start(t)
	eachKubectl(t, func(t *testing.T, run runKubectl) {
		c.post(definitionsPath, boatDefinition("", `"masts":{"type":"integer","description":"how many there are"}`)).ok()
		out, code := run(cluster, "explain", "boats.spec")
		require.Zero(t, code, out)
		require.Contains(t, out, "how many there are")
		hash := openAPIHash(c)
		require.NotEmpty(t, hash)

		definition := c.get(definitionsPath + "/boats.example.com").ok().object()
		c.patch(definitionsPath+"/boats.example.com", jsonPatch, `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/sails","value":{"type":"integer"}},
			{"op":"add","path":"/spec/versions/-","value":{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`).ok()
		require.NotEmpty(t, definition.GetUID())
		require.Eventually(t, func() bool { return openAPIHash(c) != hash && c.get("/apis/example.com/v2").code == 200 }, frameTimeout, 5*time.Millisecond)
		c.post(boats, boat("a", `,"spec":{"sails":1}`)).ok()
		second := c.get("/apis/example.com/v2/namespaces/default/boats/a").ok().object()
		require.Equal(t, "example.com/v2", second.GetAPIVersion())
		require.Equal(t, map[string]any{"sails": int64(1)}, second.Object["spec"])
		require.Equal(t, "v2", c.get("/apis/example.com").ok().object().Object["preferredVersion"].(map[string]any)["version"])
		c.delete(definitionsPath+"/boats.example.com", "").ok()
		require.Eventually(t, func() bool { return c.get("/apis/example.com").code == 404 }, frameTimeout, 5*time.Millisecond)
		require.Empty(t, openAPIHash(c))
		require.Eventually(t, func() bool { return c.get(definitionsPath+"/boats.example.com").code == 404 }, frameTimeout, 5*time.Millisecond)
	})
}

// openAPIHash is by what the index of documents refers to that of example.com/v1; empty if it does not.
func openAPIHash(c *client) string {
	c.t.Helper()
	path, _ := c.get("/openapi/v3").ok().object().Object["paths"].(map[string]any)["apis/example.com/v1"].(map[string]any)
	text, _ := path["serverRelativeURL"].(string)
	return text
}

// Rules see the old object, may not cost without bound, and leave what has not changed in peace.
func TestCustomRules(t *testing.T) {
	_, c := start(t)
	rules := `"x-kubernetes-validations":[{"rule":"self.min <= self.max","messageExpression":"'min is '+'above max'","reason":"FieldValueForbidden","fieldPath":".min"},
		{"rule":"self.max >= oldSelf.max","message":"max only grows"}],"type":"object"`
	definition := strings.Replace(boatDefinition("", `"min":{"type":"integer","default":0},"max":{"type":"integer","default":10},"name":{"type":"string"}`), `"spec":{"type":"object","properties":{"min"`, `"spec":{`+rules+`,"properties":{"min"`, 1)
	c.post(definitionsPath, definition).ok()
	c.post(boats, boat("a", `,"spec":{"min":11}`)).fails(422, metav1.StatusReasonInvalid, "spec.min: Forbidden: min is above max")
	c.post(boats, boat("a", `,"spec":{"max":5}`)).ok()
	c.patch(boats+"/a", mergePatch, `{"spec":{"max":4}}`).fails(422, metav1.StatusReasonInvalid, "max only grows")
	c.patch(boats+"/a", mergePatch, `{"spec":{"max":6}}`).ok()

	// A rule that is younger than the object judges what changes, and only that.
	c.patch(definitionsPath+"/boats.example.com", jsonPatch, `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/name/maxLength","value":1},
		{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/max/multipleOf","value":5}]`).ok()
	require.Eventually(t, func() bool { return c.post(boats, boat("x", `,"spec":{"max":9}`)).code == 422 }, frameTimeout, 5*time.Millisecond)
	c.patch(boats+"/a", mergePatch, `{"spec":{"name":"n"}}`).ok()
	c.patch(boats+"/a", mergePatch, `{"spec":{"name":"nn"}}`).fails(422, metav1.StatusReasonInvalid, "spec.name: Too long")

	costly := strings.Replace(definition, `"rule":"self.min <= self.max"`, `"rule":"self.names.all(a, self.names.all(b, self.names.all(c, a != b || b != c)))"`, 1)
	costly = strings.Replace(costly, `"min":{`, `"names":{"type":"array","items":{"type":"string"}},"min":{`, 1)
	costly = strings.NewReplacer("boats", "ships", "boat", "ship", "Boat", "Ship", `"bt"`, `"sh"`).Replace(costly)
	c.post(definitionsPath, costly).fails(422, metav1.StatusReasonInvalid, "cost")
	c.post(definitionsPath, strings.Replace(definition, `self.min <= self.max`, `self.nothing == 1`, 1)).fails(422, metav1.StatusReasonInvalid, "undefined field 'nothing'")
}

// Of two definitions in a group that ask for one name, the first has it, until it goes.
func TestDefinitionsWithOneName(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", "")).ok()
	second := strings.NewReplacer(`"boats.example.com"`, `"rafts.example.com"`, `"plural":"boats"`, `"plural":"rafts"`, `"singular":"boat"`, `"singular":"raft"`, `["bt"]`, `["rt"]`).Replace(boatDefinition("", ""))
	made := c.post(definitionsPath, second).ok().object()
	require.Contains(t, fmt.Sprint(made.Object["status"]), `"BoatList" is already in use`)
	require.Contains(t, fmt.Sprint(made.Object["status"]), `NotAccepted`)
	c.get("/apis/example.com/v1/namespaces/default/rafts").fails(404, metav1.StatusReasonNotFound, "")
	c.delete(definitionsPath+"/boats.example.com", "").ok()
	require.Eventually(t, func() bool { return c.get("/apis/example.com/v1/namespaces/default/rafts").code == 200 }, frameTimeout, 5*time.Millisecond)
	status := fmt.Sprint(c.get(definitionsPath + "/rafts.example.com").ok().object().Object["status"])
	require.NotContains(t, status, "False")
}

// The scale subresource, where a definition says it is; fields that it lets be selected.
func TestScaleAndFieldsOfCustomResources(t *testing.T) {
	cluster, c := start(t)
	c.post(definitionsPath, boatDefinition(`"subresources":{"status":{},"scale":{"specReplicasPath":".spec.crew.size","statusReplicasPath":".status.crew","labelSelectorPath":".status.selector"}},
		"selectableFields":[{"jsonPath":".spec.captain"}],`, `"captain":{"type":"string"},"crew":{"type":"object","properties":{"size":{"type":"integer"}}}`)).ok()
	c.post(boats, boat("a", `,"spec":{"captain":"thor","crew":{"size":3}}`)).ok()
	c.post(boats, boat("b", `,"spec":{"captain":"bengt"}`)).ok()
	c.patch(boats+"/a/status", mergePatch, `{"status":{"crew":2,"selector":"a=b"}}`).ok()
	c.patch(boats+"/a/scale", strategicPatch, `{"spec":{"replicas":3}}`).fails(415, metav1.StatusReasonUnsupportedMediaType, "application/merge-patch+json")
	scale := c.get(boats + "/a/scale").ok().object()
	require.Equal(t, "Scale", scale.GetKind())
	require.Equal(t, map[string]any{"replicas": int64(3)}, scale.Object["spec"])
	require.Equal(t, map[string]any{"replicas": int64(2), "selector": "a=b"}, scale.Object["status"])
	out, code := kubectl(cluster, "scale", "boat/a", "--replicas=6")
	require.Zero(t, code, out)
	require.EqualValues(t, 6, c.get(boats + "/a").ok().object().Object["spec"].(map[string]any)["crew"].(map[string]any)["size"])
	require.Contains(t, fmt.Sprint(c.get(boats+"/a").ok().object().GetManagedFields()), "f:size")

	require.Equal(t, "a", listed(c, boats, "fieldSelector", "spec.captain=thor"))
	require.Equal(t, "b", listed(c, boats, "fieldSelector", "spec.captain!=thor"))
	c.get(boats+"?fieldSelector="+url.QueryEscape("spec.other=x")).fails(400, metav1.StatusReasonBadRequest, "")
}
