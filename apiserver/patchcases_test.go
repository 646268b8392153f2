package apiserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAP20_JSONPatchStatusCodes: 400 for what is no patch, 422 for what does not fit, 413 for what grows without bounds.
func TestAP20_JSONPatchStatusCodes(t *testing.T) {
	_, c := start(t)
	before := c.post(maps, configMap("c", "")).ok().resourceVersion()
	for body, code := range map[string]int{
		`{`:          400,
		`{"op":"x"}`: 400,
		`[{"op":"add","path":"metadata","value":1}]`:                 422,
		`[{"op":"test","path":"/data/k","value":"other"}]`:           422,
		`[{"op":"remove","path":"/data/missing"}]`:                   422,
		`[{"op":"add","path":"/data/missing/deeper","value":"x"}]`:   422,
		`[{"op":"nope","path":"/data/k"}]`:                           422,
		`[{"op":"replace","path":"/metadata/labels/a","value":"b"}]`: 422,
	} {
		answer := c.patch(maps+"/c", jsonPatch, body)
		require.Equal(t, code, answer.code, "%s: %s", body, answer.body)
		answer.status()
	}
	bomb := `[{"op":"add","path":"/data/a","value":"` + strings.Repeat("x", 1000) + `"}` + strings.Repeat(`,{"op":"copy","from":"/data","path":"/data/b"}`, 25) + `]`
	require.Contains(t, []int{413, 422}, c.patch(maps+"/c", jsonPatch, bomb).code)
	require.Equal(t, before, c.get(maps+"/c").resourceVersion(), "nothing was changed")
}

// TestAP21_PatchesThatAreNoObjects: 400 in each type, 415 for a type that is none.
func TestAP21_PatchesThatAreNoObjects(t *testing.T) {
	_, c := start(t)
	before := c.post(maps, configMap("c", "")).ok().resourceVersion()
	for _, kind := range []string{mergePatch, strategicPatch, jsonPatch, applyPatch} {
		for _, body := range []string{`"abc"`, `1`, ``} {
			c.do("PATCH", maps+"/c?fieldManager=m", body, "Content-Type", kind).fails(400, metav1.StatusReasonBadRequest, "")
		}
		if kind != jsonPatch { // there it is a patch of no operations
			c.do("PATCH", maps+"/c?fieldManager=m", `[]`, "Content-Type", kind).fails(400, metav1.StatusReasonBadRequest, "")
		}
	}
	c.do("PATCH", maps+"/c", `null`, "Content-Type", mergePatch).fails(400, metav1.StatusReasonBadRequest, "")
	c.do("PATCH", maps+"/c?fieldManager=m", `null`, "Content-Type", applyPatch).fails(400, metav1.StatusReasonBadRequest, "")
	c.do("PATCH", maps+"/c", `{}`, "Content-Type", "application/nope-patch+json").fails(415, metav1.StatusReasonUnsupportedMediaType, "415")
	require.Equal(t, before, c.get(maps+"/c").resourceVersion(), "nothing was changed")
}

// TestAP24_AppliedListKeyChanges: an entry that nobody else owns goes when its owner applies another key in its place.
func TestAP24_AppliedListKeyChanges(t *testing.T) {
	_, c := start(t)
	apply := func(path, manager, body string) answer {
		return c.patch(path+"?fieldManager="+manager, applyPatch, body)
	}
	const deployments = "/apis/apps/v1/namespaces/default/deployments/d"
	deployment := func(port string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
			spec: {containers: [{name: c, image: i, ports: [{containerPort: ` + port + `}]}]}}}}`
	}
	apply(deployments, "m", deployment("80")).ok()
	changed := apply(deployments, "m", deployment("8080")).ok()
	require.NotContains(t, string(changed.body), `"containerPort":80,`)
	require.Equal(t, 1, strings.Count(string(changed.body), `"containerPort":8080`))

	const services = "/api/v1/namespaces/default/services/s"
	service := func(port string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: web, port: ` + port + `}]}}`
	}
	apply(services, "m", service("80")).ok()
	require.Equal(t, 1, strings.Count(string(apply(services, "m", service("81")).ok().body), `"name":"web"`))
	apply(services, "other", service("81")).ok()
	apply(services, "m", service("82")).fails(422, metav1.StatusReasonInvalid, `Duplicate value: "web"`)
}

// TestAP51_YAMLCorners: a YAML body means what it means to kubectl, which reads it with the same library.
func TestAP51_YAMLCorners(t *testing.T) {
	_, c := start(t)
	apply := func(data string) answer {
		return c.patch(maps+"/c?fieldManager=m&force=true", applyPatch, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"+data)
	}
	value := func(a answer) any { return a.ok().object().Object["data"].(map[string]any)["k"] }
	require.Equal(t, "=", value(apply("data: {k: =}\n")))
	require.Equal(t, "2026-01-01", value(apply("data: {k: '2026-01-01'}\n")))
	require.Equal(t, "merged", value(apply("data:\n  <<: {k: merged}\n")), "a merge key")
	require.Equal(t, "crlf", value(apply(strings.ReplaceAll("data:\n  k: crlf\n", "\n", "\r\n"))))
	for _, wrong := range []string{"data: {k: on}\n", "data: {k: yes}\n", "data: {k: 1_000}\n", "data: {k: 0o17}\n"} {
		apply(wrong).fails(400, metav1.StatusReasonBadRequest, ".data.k")
	}
	apply("data:\n\tk: tab\n").fails(400, metav1.StatusReasonBadRequest, "")
}
