package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAP26_ApplyCreates: apply on a name that does not exist makes it, under the same rules as create.
func TestAP26_ApplyCreates(t *testing.T) {
	_, c := start(t)
	for _, tc := range []struct{ name, path, body string }{
		{"ConfigMap", maps + "/c", configMap("c", "")},
		{"Deployment", deployments + "/c", deployment("c", "")},
		{"Namespace", "/api/v1/namespaces/c", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"c","labels":{"a":"b"}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			named := tc.path + "?fieldManager=m"
			withUID := c.patch(named, applyPatch, replaceName(tc.body, `"name":"c","uid":"11111111-2222-3333-4444-555555555555"`))
			withUID.fails(409, metav1.StatusReasonConflict, "UID")
			c.patch(tc.path, applyPatch, tc.body).fails(422, metav1.StatusReasonInvalid, "fieldManager")
			c.patch(named, applyPatch, replaceName(tc.body, `"name":"other"`)).fails(400, metav1.StatusReasonBadRequest, "name")
			c.patch(named, applyPatch, replaceName(tc.body, `"name":"c","managedFields":[{"manager":"x"}]`)).fails(400, metav1.StatusReasonBadRequest, "managedFields")
			require.Equal(t, 201, c.patch(named+"&dryRun=All", applyPatch, tc.body).code)
			require.Equal(t, 404, c.get(tc.path).code)
			made := c.patch(named, applyPatch, tc.body)
			require.Equal(t, 201, made.code)
			require.Equal(t, "m", made.object().GetManagedFields()[0].Manager)
			require.Equal(t, metav1.ManagedFieldsOperationApply, made.object().GetManagedFields()[0].Operation)
			again := c.patch(named, applyPatch, tc.body)
			require.Equal(t, 200, again.code)
			require.Equal(t, made.resourceVersion(), again.resourceVersion())
		})
	}
	c.patch(maps+"/y?fieldManager=m", applyPatch, configMap("y", `"namespace":"other"`)).fails(400, metav1.StatusReasonBadRequest, "namespace")
	c.patch(maps+"/y?fieldManager=m", applyPatch, `{"metadata":{"name":"y"}}`).fails(400, metav1.StatusReasonBadRequest, "")
	c.patch("/api/v1/namespaces/nowhere/configmaps/y?fieldManager=m", applyPatch, configMap("y", "")).fails(404, metav1.StatusReasonNotFound, "namespaces")
	c.patch(maps+"/yam?fieldManager=m", applyPatch, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yam}\ndata: {a: 1}\n").fails(400, metav1.StatusReasonBadRequest, "data")
}

// replaceName puts more metadata in the place of the name "c".
func replaceName(body, metadata string) string {
	const name = `"name":"c"`
	for i := 0; i+len(name) <= len(body); i++ {
		if body[i:i+len(name)] == name {
			return body[:i] + metadata + body[i+len(name):]
		}
	}
	return body
}

func data(t *testing.T, a answer) map[string]string {
	t.Helper()
	out, _, err := unstructured.NestedStringMap(a.object().Object, "data")
	require.NoError(t, err)
	return out
}

// Two managers disagree about a field: 409 that names the field and its owner, unless forced.
func TestApplyConflicts(t *testing.T) {
	_, c := start(t)
	path := maps + "/c?fieldManager="
	value := func(v string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: " + v + "}\n"
	}
	c.patch(path+"one", applyPatch, value("a")).ok()
	refused := c.patch(path+"two", applyPatch, value("b"))
	refused.fails(409, metav1.StatusReasonConflict, `conflict with "one"`)
	causes := refused.status().Details.Causes
	require.Len(t, causes, 1)
	require.Equal(t, metav1.CauseTypeFieldManagerConflict, causes[0].Type)
	require.Equal(t, ".data.k", causes[0].Field)

	require.Equal(t, "b", data(t, c.patch(path+"two&force=true", applyPatch, value("b")).ok())["k"])
	c.patch(path+"one", applyPatch, value("a")).fails(409, metav1.StatusReasonConflict, `conflict with "two"`)

	// What an update wrote belongs to its manager as well.
	c.patch(maps+"/c?fieldManager=hand", mergePatch, `{"data":{"k":"by hand"}}`).ok()
	c.patch(path+"two", applyPatch, value("b")).fails(409, metav1.StatusReasonConflict, `conflict with "hand"`)

	// Not naming a field any more gives it up; without another owner it goes.
	c.patch(path+"two&force=true", applyPatch, value("b")).ok()
	require.Empty(t, data(t, c.patch(path+"two", applyPatch, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n").ok()))
}

// TestAP23_ApplyWithoutDefaultedListKey: ports are merged by number and protocol, also when the
// protocol was left to its default.
func TestAP23_ApplyWithoutDefaultedListKey(t *testing.T) {
	_, c := start(t)
	path := deployments + "/d?fieldManager=m"
	apply := func(ports string) []any {
		t.Helper()
		body := replaceContainer(deployment("d", `"replicas":0`), ports)
		made := c.patch(path, applyPatch, body).ok()
		require.Equal(t, made.resourceVersion(), c.patch(path, applyPatch, body).ok().resourceVersion(), "again is a no-op")
		containers, _, err := unstructured.NestedSlice(made.object().Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		return containers[0].(map[string]any)["ports"].([]any)
	}
	require.Len(t, apply(`{"containerPort":53}`), 1)
	require.Len(t, apply(`{"containerPort":53},{"containerPort":53,"protocol":"UDP"}`), 2)
	left := apply(`{"containerPort":53,"protocol":"UDP"}`)
	require.Len(t, left, 1)
	require.Equal(t, "UDP", left[0].(map[string]any)["protocol"])
}

func replaceContainer(deployment, ports string) string {
	const image = `"image":"i"`
	for i := 0; i+len(image) <= len(deployment); i++ {
		if deployment[i:i+len(image)] == image {
			return deployment[:i] + image + `,"ports":[` + ports + `]` + deployment[i+len(image):]
		}
	}
	return deployment
}

// The status is no business of the resource itself, neither to set nor to own.
func TestApplyOwnsNoStatus(t *testing.T) {
	_, c := start(t)
	body := replaceName(deployment("c", `"replicas":0`), `"name":"c"`)
	body = body[:len(body)-1] + `,"status":{"replicas":7}}`
	made := c.patch(deployments+"/c?fieldManager=m", applyPatch, body).ok().object()
	_, found, _ := unstructured.NestedInt64(made.Object, "status", "replicas")
	require.False(t, found)
	require.NotContains(t, made.GetManagedFields()[0].FieldsV1.String(), "f:status")
}

// TestAP22_EqualPortNumbers: a Service with one number for two protocols keeps both ports.
func TestAP22_EqualPortNumbers(t *testing.T) {
	_, c := start(t)
	const services = "/api/v1/namespaces/default/services"
	const both = `"ports":[{"name":"t","port":443,"protocol":"TCP"},{"name":"u","port":443,"protocol":"UDP"}]`
	protocols := func(a answer) []string {
		t.Helper()
		list, _, err := unstructured.NestedSlice(a.ok().object().Object, "spec", "ports")
		require.NoError(t, err)
		var out []string
		for _, port := range list {
			out = append(out, port.(map[string]any)["protocol"].(string))
		}
		return out
	}
	want := []string{"TCP", "UDP"}
	require.Equal(t, want, protocols(c.post(services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{`+both+`}}`)))
	require.Equal(t, want, protocols(c.patch(services+"/s", strategicPatch, `{"metadata":{"labels":{"a":"b"}}}`)))
	require.Equal(t, want, protocols(c.patch(services+"/s?fieldManager=m&force=true", applyPatch, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{`+both+`}}`)))
	// Strategic merge knows ports by number alone, upstream too: what it makes of both is refused
	// rather than stored with a port lost or doubled.
	patched := c.patch(services+"/s", strategicPatch, `{"spec":{`+both+`}}`)
	if patched.code != 200 {
		patched.fails(422, metav1.StatusReasonInvalid, "spec.ports")
	}
	require.Equal(t, want, protocols(c.get(services+"/s")))
}
