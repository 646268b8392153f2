package apiserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The bad-input line of the issue, and more of its kind: each request gets the code and reason that
// Kubernetes gives, and the server goes on.
func TestBadInput(t *testing.T) {
	_, c := start(t)
	c.post(maps, configMap("taken", "")).ok()
	old := c.get(maps + "/taken").resourceVersion()
	c.patch(maps+"/taken", mergePatch, `{"data":{"k":"new"}}`).ok()

	for _, tc := range []struct {
		name               string
		method, path, body string
		headers            []string
		code               int
		reason             metav1.StatusReason
		text               string
	}{
		{name: "malformed JSON", method: "POST", path: maps, body: `{"kind":`, code: 400, reason: "BadRequest", text: "the object provided is unrecognized"},
		{name: "empty body", method: "POST", path: maps, code: 400, reason: "BadRequest"},
		{name: "not an object", method: "POST", path: maps, body: `[1]`, code: 400, reason: "BadRequest", text: "cannot unmarshal"},
		{name: "unknown kind", method: "POST", path: maps, body: `{"apiVersion":"v1","kind":"Nope"}`, code: 400, reason: "BadRequest", text: `no kind "Nope"`},
		{name: "another kind", method: "POST", path: maps, body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`, code: 400, reason: "BadRequest", text: "Secret in version \"v1\" cannot be handled as a ConfigMap"},
		{name: "wrong apiVersion", method: "POST", path: maps, body: `{"apiVersion":"v7","kind":"ConfigMap","metadata":{"name":"s"}}`, code: 400, reason: "BadRequest", text: "v7"},
		{name: "wrong type of a field", method: "POST", path: maps, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"k":1}}`, code: 400, reason: "BadRequest", text: "data"},
		{name: "missing name", method: "POST", path: maps, body: `{"apiVersion":"v1","kind":"ConfigMap"}`, code: 422, reason: "Invalid", text: "name or generateName is required"},
		{name: "invalid name", method: "POST", path: maps, body: configMap("Upper_", ""), code: 422, reason: "Invalid", text: "metadata.name: Invalid value"},
		{name: "invalid label", method: "POST", path: maps, body: configMap("l", `"labels":{"a b":"c"}`), code: 422, reason: "Invalid", text: "metadata.labels"},
		{name: "resourceVersion on create", method: "POST", path: maps, body: configMap("rv", `"resourceVersion":"5"`), code: 400, reason: "BadRequest", text: "resourceVersion should not be set"},
		{name: "name taken", method: "POST", path: maps, body: configMap("taken", ""), code: 409, reason: "AlreadyExists", text: `configmaps "taken" already exists`},
		{name: "another namespace", method: "POST", path: maps, body: configMap("n", `"namespace":"kube-system"`), code: 400, reason: "BadRequest", text: "the namespace of the provided object does not match"},
		{name: "missing namespace", method: "POST", path: "/api/v1/namespaces/nowhere/configmaps", body: configMap("n", ""), code: 404, reason: "NotFound", text: `namespaces "nowhere" not found`},
		{name: "dry run of a missing namespace", method: "POST", path: "/api/v1/namespaces/nowhere/configmaps?dryRun=All", body: configMap("n", ""), code: 404, reason: "NotFound"},
		{name: "unknown dryRun", method: "POST", path: maps + "?dryRun=Some", body: configMap("n", ""), code: 422, reason: "Invalid", text: "dryRun"},
		{name: "unknown fieldValidation", method: "POST", path: maps + "?fieldValidation=Perhaps", body: configMap("n", ""), code: 422, reason: "Invalid", text: "fieldValidation"},
		{name: "body type", method: "POST", path: maps, body: "x", headers: []string{"Content-Type", "text/nonsense"}, code: 415, reason: "UnsupportedMediaType", text: "application/json"},
		{name: "compressed body", method: "POST", path: maps, body: "x", headers: []string{"Content-Encoding", "gzip"}, code: 415, reason: "UnsupportedMediaType"},
		{name: "Accept", method: "GET", path: maps, headers: []string{"Accept", "text/nonsense"}, code: 406, reason: "NotAcceptable", text: "application/json"},
		{name: "10 MiB", method: "POST", path: maps, body: strings.Repeat("x", 10<<20), code: 413, reason: "RequestEntityTooLarge", text: "limit is 3145728"},
		{name: "stale resourceVersion", method: "PUT", path: maps + "/taken", body: configMap("taken", `"resourceVersion":"`+old+`"`), code: 409, reason: "Conflict", text: "the object has been modified"},
		{name: "another uid", method: "PUT", path: maps + "/taken", body: configMap("taken", `"uid":"11111111-2222-3333-4444-555555555555"`), code: 409, reason: "Conflict", text: "UID in precondition"},
		{name: "another name", method: "PUT", path: maps + "/taken", body: configMap("other", ""), code: 400, reason: "BadRequest", text: "does not match the name on the URL"},
		{name: "update of nothing", method: "PUT", path: maps + "/none", body: configMap("none", ""), code: 404, reason: "NotFound", text: `configmaps "none" not found`},
		{name: "get of nothing", method: "GET", path: maps + "/none", code: 404, reason: "NotFound", text: `configmaps "none" not found`},
		{name: "delete of nothing", method: "DELETE", path: maps + "/none", code: 404, reason: "NotFound"},
		{name: "patch of nothing", method: "PATCH", path: maps + "/none", body: "{}", headers: []string{"Content-Type", mergePatch}, code: 404, reason: "NotFound"},
		{name: "unknown patch type", method: "PATCH", path: maps + "/taken", body: "{}", headers: []string{"Content-Type", "application/json"}, code: 415, reason: "UnsupportedMediaType", text: "415: Unsupported Media Type"},
		{name: "unknown resource", method: "GET", path: "/api/v1/namespaces/default/frobs", code: 404, reason: "NotFound", text: "the server could not find the requested resource"},
		{name: "unknown group", method: "GET", path: "/apis/frobs.io/v1/frobs", code: 404, reason: "NotFound", text: "the server could not find the requested resource"},
		{name: "unknown version", method: "GET", path: "/apis/apps/v9", code: 404, reason: "NotFound"},
		{name: "unknown subresource", method: "GET", path: maps + "/taken/frob", code: 404, reason: "NotFound"},
		{name: "below a subresource that has nothing there", method: "GET", path: "/api/v1/namespaces/default/pods/none/log/x", code: 404, reason: "NotFound", text: "the server could not find the requested resource"},
		{name: "no object, and a slash after it", method: "GET", path: maps + "/none/", code: 404, reason: "NotFound", text: `configmaps "none" not found`},
		{name: "an empty piece", method: "GET", path: maps + "//taken", code: 404, reason: "NotFound", text: "the server could not find the requested resource"},
		{name: "a review with a name", method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body: `{"metadata":{"name":"x"},"spec":{"nonResourceAttributes":{"path":"/"}}}`, code: 422, reason: "Invalid", text: "must be empty"},
		{name: "a review of two selectors", method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", code: 422, reason: "Invalid", text: "may not specified at the same time",
			body: `{"spec":{"resourceAttributes":{"fieldSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"Exists"}]}}}}`},
		{name: "a review of no token", method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", body: `{}`, code: 400, reason: "BadRequest", text: "token is required"},
		{name: "an eviction of no name", method: "POST", path: "/api/v1/namespaces/default/pods/p/eviction", body: `{}`, code: 400, reason: "BadRequest", text: "name in URL does not match name in Eviction object"},
		{name: "a token of another name", method: "POST", path: "/api/v1/namespaces/default/serviceaccounts/default/token", body: `{"metadata":{"name":"x"}}`, code: 422, reason: "Invalid", text: "must match the service account name"},
		{name: "a page and a revision", method: "GET", path: maps + "?continue=x&resourceVersion=5", code: 400, reason: "BadRequest", text: "specifying resource version is not allowed"},
		{name: "a watch of a page", method: "GET", path: maps + "?watch=1&continue=x", code: 422, reason: "Invalid", text: "is forbidden when continue is provided"},
		{name: "an object in an empty namespace", method: "GET", path: "/api/v1/namespaces//configmaps/taken", code: 400, reason: "BadRequest", text: "Namespace parameter required."},
		{name: "a name that is no name", method: "GET", path: maps + "/%2e%2e", code: 400, reason: "BadRequest", text: `Name parameter invalid: "..": may not be '..'`},
		{name: "POST on a document", method: "POST", path: "/apis/apps/v1", code: 405, reason: "MethodNotAllowed"},
		{name: "POST below watch", method: "POST", path: "/api/v1/watch/namespaces/default/configmaps", body: configMap("n", ""), code: 405, reason: "MethodNotAllowed"},
		{name: "PUT on a collection", method: "PUT", path: maps, body: configMap("n", ""), code: 405, reason: "MethodNotAllowed"},
		{name: "POST on an object", method: "POST", path: maps + "/taken", body: configMap("n", ""), code: 405, reason: "MethodNotAllowed"},
		{name: "unknown method", method: "FROB", path: maps, code: 405, reason: "MethodNotAllowed"},
		{name: "cluster-scoped in a namespace", method: "GET", path: "/api/v1/namespaces/default/nodes", code: 404, reason: "NotFound"},
		{name: "unknown field selector", method: "GET", path: maps + "?fieldSelector=data.k=v", code: 400, reason: "BadRequest", text: `"data.k" is not a known field selector`},
		{name: "broken label selector", method: "GET", path: maps + "?labelSelector=a+in+(", code: 400, reason: "BadRequest"},
		{name: "no JSON patch", method: "PATCH", path: maps + "/taken", body: `{"a":1}`, headers: []string{"Content-Type", jsonPatch}, code: 400, reason: "BadRequest"},
		{name: "failing test", method: "PATCH", path: maps + "/taken", body: `[{"op":"test","path":"/data/k","value":"x"}]`, headers: []string{"Content-Type", jsonPatch}, code: 422, reason: "Invalid"},
		{name: "patched type", method: "PATCH", path: maps + "/taken", body: `{"data":7}`, headers: []string{"Content-Type", mergePatch}, code: 422, reason: "Invalid"},
		{name: "patched kind", method: "PATCH", path: maps + "/taken", body: `{"kind":"Secret"}`, headers: []string{"Content-Type", mergePatch}, code: 422, reason: "Invalid"},
		{name: "body of a delete", method: "DELETE", path: maps + "/taken", body: `{"kind":"Pod","apiVersion":"v1"}`, code: 400, reason: "BadRequest"},
		{name: "propagation policy", method: "DELETE", path: maps + "/taken", body: `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Never"}`, code: 422, reason: "Invalid"},
		{name: "an event of the newer group is an Event", method: "POST", path: "/apis/events.k8s.io/v1/namespaces/default/events", body: `{"metadata":{"name":"e"}}`, code: 422, reason: "Invalid", text: `Event "e" is invalid: `},
		{name: "system namespace", method: "DELETE", path: "/api/v1/namespaces/kube-system", code: 403, reason: "Forbidden", text: "this namespace may not be deleted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			on := *c
			on.t = t
			on.do(tc.method, tc.path, tc.body, tc.headers...).fails(tc.code, tc.reason, tc.text)
		})
	}
	require.Equal(t, "new", c.get(maps + "/taken").ok().object().Object["data"].(map[string]any)["k"], "nothing was changed")
	require.Equal(t, 200, c.get("/readyz").code, "the server is up")
}

// TestAP29_BombsAndDepth: bodies that are small to send and large to read are refused quickly.
func TestAP29_BombsAndDepth(t *testing.T) {
	_, c := start(t)
	bomb := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := '1'; i <= '8'; i++ {
		bomb += "a" + string(i) + ": &a" + string(i) + " [" + strings.Repeat("*a"+string(i-1)+",", 8) + "*a" + string(i-1) + "]\n"
	}
	c.do("POST", maps, bomb, "Content-Type", "application/yaml").fails(400, metav1.StatusReasonBadRequest, "excessive aliasing")
	c.patch(maps+"/bomb?fieldManager=m", applyPatch, bomb).fails(400, metav1.StatusReasonBadRequest, "excessive aliasing")
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	c.post(maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"data":`+deep+`}`).fails(400, metav1.StatusReasonBadRequest, "")
	c.post(maps, configMap("present", "")).ok()
	c.patch(maps+"/present", mergePatch, strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)).fails(400, metav1.StatusReasonBadRequest, "")

	double := `[{"op":"add","path":"/data/a","value":"` + strings.Repeat("x", 100_000) + `"}`
	for i := range 25 {
		double += `,{"op":"copy","from":"/data","path":"/data/c` + string(rune('a'+i)) + `"}`
	}
	c.patch(maps+"/present", jsonPatch, double+"]").fails(413, metav1.StatusReasonRequestEntityTooLarge, "")
	many := strings.Repeat(`{"op":"test","path":"/data/k","value":"v"},`, 10_000)
	c.patch(maps+"/present", jsonPatch, "["+many+`{"op":"test","path":"/data/k","value":"v"}]`).fails(413, metav1.StatusReasonRequestEntityTooLarge, "maximum operations")
	require.Equal(t, 200, c.get("/readyz").code)
}
