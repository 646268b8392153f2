package apiserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	boats           = "/apis/example.com/v1/namespaces/default/boats"
)

// boatDefinition defines boats.example.com with more in its version, and the properties of spec.
func boatDefinition(version, properties string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"boats","singular":"boat","kind":"Boat","shortNames":["bt"],"categories":["all"]},
		"versions":[{"name":"v1","served":true,"storage":true,%s"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","properties":{%s}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`, version, properties)
}

func boat(name, more string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":%q}%s}`, name, more)
}

// A definition is established when its create is answered, and its resource is served, discovered and described from
// then on; with the definition its instances go.
func TestCustomResources(t *testing.T) {
	_, c := start(t)
	created := c.post(definitionsPath, boatDefinition(`"subresources":{"status":{}},`, `"masts":{"type":"integer","default":2},"name":{"type":"string"}`)).ok().object()
	require.Equal(t, []any{"v1"}, created.Object["status"].(map[string]any)["storedVersions"])
	for _, condition := range created.Object["status"].(map[string]any)["conditions"].([]any) {
		require.Equal(t, "True", condition.(map[string]any)["status"], condition)
	}

	made := c.post(boats, boat("kon-tiki", `,"spec":{"name":"Kon-Tiki","sails":1},"status":{"wet":true}`))
	require.Contains(t, made.header.Get("Warning"), `unknown field \"spec.sails\"`)
	obj := made.ok().object()
	require.Equal(t, map[string]any{"name": "Kon-Tiki", "masts": int64(2)}, obj.Object["spec"])
	require.NotContains(t, obj.Object, "status")
	require.EqualValues(t, 1, obj.GetGeneration())
	require.Equal(t, obj, c.get(boats+"/kon-tiki").ok().object())
	c.post(boats, boat("raft", `,"spec":{"masts":"two"}`)).fails(422, metav1.StatusReasonInvalid, "spec.masts: Invalid value: \"string\": spec.masts in body must be of type integer: \"string\"")

	patched := c.patch(boats+"/kon-tiki", mergePatch, `{"spec":{"masts":3}}`).ok().object()
	require.EqualValues(t, 2, patched.GetGeneration())
	c.patch(boats+"/kon-tiki", strategicPatch, `{"spec":{"masts":3}}`).fails(415, metav1.StatusReasonUnsupportedMediaType, "")
	wet := c.patch(boats+"/kon-tiki/status", mergePatch, `{"spec":{"masts":9},"status":{"wet":true}}`).ok().object()
	require.EqualValues(t, 2, wet.GetGeneration())
	require.Equal(t, map[string]any{"wet": true}, wet.Object["status"])
	require.EqualValues(t, 3, wet.Object["spec"].(map[string]any)["masts"])
	applied := c.patch(boats+"/tigris?fieldManager=me", applyPatch, boat("tigris", `,"spec":{"name":"Tigris"}`))
	require.Equal(t, 201, applied.code, string(applied.body))
	require.Equal(t, "BoatList", c.get(boats).ok().object().GetKind())
	require.Len(t, c.get(boats).ok().object().Object["items"], 2)

	require.Contains(t, string(c.get("/apis/example.com/v1").ok().body), `"boats/status"`)
	require.Contains(t, string(c.get("/openapi/v3/apis/example.com/v1").ok().body), `com.example.v1.Boat`)
	require.Contains(t, string(c.get("/openapi/v2").ok().body), `com.example.v1.BoatList`)

	c.delete(definitionsPath+"/boats.example.com", "").ok()
	require.Eventually(t, func() bool { return c.get(definitionsPath+"/boats.example.com").code == 404 }, frameTimeout, 5*time.Millisecond)
	c.get(boats).fails(404, metav1.StatusReasonNotFound, "")
	c.post(definitionsPath, boatDefinition("", "")).ok()
	require.Empty(t, c.get(boats).ok().object().Object["items"])
}
