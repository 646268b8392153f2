package apiserver_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const deployments = "/apis/apps/v1/namespaces/default/deployments"

// deployment is the JSON of a Deployment; spec is more of its spec.
func deployment(name, spec string) string {
	if spec != "" {
		spec = "," + spec
	}
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}%s}}`, name, spec)
}

func TestCreateDecidesMetadata(t *testing.T) {
	_, c := start(t)
	made := c.post(maps, configMap("c", `"uid":"11111111-2222-3333-4444-555555555555","selfLink":"/x","generation":7,
		"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z"`)).ok().object()
	require.NotEqual(t, "11111111-2222-3333-4444-555555555555", string(made.GetUID()))
	require.Greater(t, made.GetCreationTimestamp().Year(), 2020)
	require.Nil(t, made.GetDeletionTimestamp())
	require.Empty(t, made.GetSelfLink())
	require.Equal(t, int64(7), made.GetGeneration(), "nobody counts that of configmaps: it stays as it was sent, as in Kubernetes")
	require.Equal(t, "default", made.GetNamespace())
	managed := made.GetManagedFields()
	require.Len(t, managed, 1)
	require.Equal(t, "kontiki", managed[0].Manager, "from the user agent")
	require.Equal(t, "application/yaml", c.do("POST", maps, configMap("y", ""), "Accept", "application/yaml").ok().header.Get("Content-Type"))
}

// TestAP32_GenerateName: 63 characters at most, five of them random; a clash is not the client's problem.
func TestAP32_GenerateName(t *testing.T) {
	_, c := start(t)
	generated := func(wish string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"` + wish + `"}}`
	}
	long := c.post(maps, generated(strings.Repeat("g", 80))).ok().object().GetName()
	require.Regexp(t, regexp.MustCompile(`^g{58}[bcdfghjklmnpqrstvwxz2456789]{5}$`), long)
	kept := c.post(maps, generated("ab-")).ok().object()
	require.Equal(t, "ab-", kept.GetGenerateName())
	require.Equal(t, "fixed", c.post(maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"ab-","name":"fixed"}}`).ok().object().GetName())
	c.post(maps, generated("dot.")).fails(422, metav1.StatusReasonInvalid, "generateName")
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 50 {
				c.post(maps, generated("many-")).ok()
			}
		})
	}
	clients.Wait()
}

// TestAP12_NoOpWritesAreFree: no new revision, no event, managedFields untouched.
func TestAP12_NoOpWritesAreFree(t *testing.T) {
	_, c := start(t)
	body := configMap("c", `"labels":{"l":"1"}`)
	path := maps + "/c"
	c.patch(path+"?fieldManager=ssa", applyPatch, body).ok()
	stored := c.get(path).ok()
	frames := c.watch(maps + "?watch=1&resourceVersion=" + stored.resourceVersion())
	for name, write := range map[string]func() answer{
		"merge":     func() answer { return c.patch(path, mergePatch, `{}`) },
		"json":      func() answer { return c.patch(path, jsonPatch, `[]`) },
		"strategic": func() answer { return c.patch(path, strategicPatch, `{"metadata":{"labels":{"l":"1"}}}`) },
		"update":    func() answer { return c.put(path, string(stored.body)) },
		"apply":     func() answer { return c.patch(path+"?fieldManager=ssa", applyPatch, body) },
	} {
		require.JSONEq(t, string(stored.body), string(write().ok().body), name)
	}
	changed := c.patch(path, mergePatch, `{"metadata":{"labels":{"l":"2"}}}`).ok().resourceVersion()
	first := c.next(frames)
	require.Equal(t, changed, first.Object.GetResourceVersion(), "the first event is the first change")
}

// TestAP13_Generation counts changes of what is wished for, and nothing else.
func TestAP13_Generation(t *testing.T) {
	_, c := start(t)
	path := deployments + "/d"
	require.EqualValues(t, 1, c.post(deployments, deployment("d", `"replicas":0`)).ok().object().GetGeneration())
	for _, step := range []struct {
		name, path, body string
		want             int64
	}{
		{"label", path, `{"metadata":{"labels":{"x":"y"}}}`, 1},
		{"status", path + "/status", `{"status":{"observedGeneration":1}}`, 1},
		{"spec", path, `{"spec":{"minReadySeconds":5}}`, 2},
		{"the same spec", path, `{"spec":{"minReadySeconds":5}}`, 2},
		{"spec through status", path + "/status", `{"spec":{"minReadySeconds":9}}`, 2},
		{"status through the resource", path, `{"status":{"collisionCount":9}}`, 2},
	} {
		require.Equal(t, step.want, c.patch(step.path, mergePatch, step.body).ok().object().GetGeneration(), step.name)
	}
	now := c.get(path).object()
	seconds, _, _ := unstructured.NestedInt64(now.Object, "spec", "minReadySeconds")
	require.EqualValues(t, 5, seconds)
	_, found, _ := unstructured.NestedInt64(now.Object, "status", "collisionCount")
	require.False(t, found)
}

// TestAP28_FieldValidation: unknown and duplicate fields are refused, warned of or ignored.
func TestAP28_FieldValidation(t *testing.T) {
	_, c := start(t)
	body := func(name string) string {
		return strings.Replace(deployment(name, `"replicas":2,"replicas":0,"foo":1`), `"metadata":{`, `"metadata":{"bogus":1,`, 1)
	}
	strict := c.post(deployments+"?fieldValidation=Strict", body("s"))
	strict.fails(400, metav1.StatusReasonBadRequest, "strict decoding error")
	for _, fault := range []string{`unknown field "spec.foo"`, `duplicate field "spec.replicas"`, `unknown field "metadata.bogus"`} {
		require.Contains(t, strict.status().Message, fault)
	}
	for level, warnings := range map[string]int{"Warn": 3, "": 3, "Ignore": 0} {
		made := c.post(deployments+"?fieldValidation="+level, body("d"+strings.ToLower(level))).ok()
		require.Len(t, made.header.Values("Warning"), warnings, level)
		replicas, _, _ := unstructured.NestedInt64(made.object().Object, "spec", "replicas")
		require.EqualValues(t, 0, replicas, "the last duplicate wins")
	}
	for kind, patch := range map[string]string{
		mergePatch: `{"spec":{"foo":1}}`, strategicPatch: `{"spec":{"foo":1}}`, jsonPatch: `[{"op":"add","path":"/spec/foo","value":1}]`,
	} {
		c.patch(deployments+"/d?fieldValidation=Strict", kind, patch).fails(422, metav1.StatusReasonInvalid, "foo")
		require.Len(t, c.patch(deployments+"/d", kind, patch).ok().header.Values("Warning"), 1, kind)
	}
	yaml := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yam}\ndata:\n  a: \"1\"\n  a: \"2\"\n"
	c.do("POST", maps+"?fieldValidation=Strict", yaml, "Content-Type", "application/yaml").fails(400, metav1.StatusReasonBadRequest, "already set")
	require.Len(t, c.do("POST", maps, yaml, "Content-Type", "application/yaml").ok().header.Values("Warning"), 1)
	c.patch(maps+"/yam?fieldManager=m&force=true&fieldValidation=Strict", applyPatch, yaml).fails(400, metav1.StatusReasonBadRequest, "already set")

	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, `,"u%d":1`, i)
	}
	total := 0
	for _, text := range c.post(deployments, deployment("many", many.String()[1:])).ok().header.Values("Warning") {
		total += len(text)
	}
	require.Less(t, total, 16<<10, "warnings are bounded")
}

// TestAP33_ResourceVersionOnUpdate: without one, or with 0, an update is unconditional.
func TestAP33_ResourceVersionOnUpdate(t *testing.T) {
	_, c := start(t)
	c.post(maps, configMap("z", `"resourceVersion":"0"`)).ok()
	for _, rv := range []string{"", `"resourceVersion":"0"`} {
		c.patch(maps+"/z", mergePatch, `{"data":{"k":"other"}}`).ok()
		require.Equal(t, map[string]any{"k": "v"}, c.put(maps+"/z", configMap("z", rv)).ok().object().Object["data"])
	}
	before := c.get(maps + "/z").object()
	after := c.put(maps+"/z", configMap("z", `"creationTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x","generation":99`)).ok().object()
	require.Equal(t, before.GetCreationTimestamp(), after.GetCreationTimestamp())
	require.Equal(t, before.GetUID(), after.GetUID())
	c.put(maps+"/z", configMap("z", `"deletionTimestamp":"2001-01-01T00:00:00Z"`)).fails(422, metav1.StatusReasonInvalid, "metadata.deletionTimestamp")
}

// Concurrent read-modify-writes lose nothing: each stale one is told so.
func TestNoLostUpdates(t *testing.T) {
	_, c := start(t)
	c.post(maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"n":""}}`).ok()
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for done := 0; done < 10; {
				now := c.get(maps + "/n").ok().object()
				value, _, _ := unstructured.NestedString(now.Object, "data", "n")
				_ = unstructured.SetNestedField(now.Object, value+"x", "data", "n")
				body, _ := json.Marshal(now.Object)
				switch result := c.put(maps+"/n", string(body)); result.code {
				case 200:
					done++
				default:
					result.fails(409, metav1.StatusReasonConflict, "the object has been modified")
				}
			}
		})
	}
	clients.Wait()
	value, _, _ := unstructured.NestedString(c.get(maps+"/n").object().Object, "data", "n")
	require.Len(t, value, 80)
}

// TestAP45_DryRun: every verb answers as if, and nothing happens.
func TestAP45_DryRun(t *testing.T) {
	_, c := start(t)
	c.post(maps, configMap("c", `"labels":{"a":"b"}`)).ok()
	before := c.get(maps).ok()
	const dry = "?dryRun=All"
	require.Empty(t, c.post(maps+dry, configMap("n", "")).ok().resourceVersion())
	require.True(t, strings.HasPrefix(c.post(maps+dry, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"g-"}}`).ok().object().GetName(), "g-"))
	require.Contains(t, string(c.put(maps+"/c"+dry, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"x"}}`).ok().body), `"k":"x"`)
	require.Contains(t, string(c.patch(maps+"/c"+dry, mergePatch, `{"data":{"k":"x"}}`).ok().body), `"k":"x"`)
	require.Equal(t, 201, c.patch(maps+"/n"+dry+"&fieldManager=m", applyPatch, configMap("n", "")).code)
	c.delete(maps+"/c"+dry, "").ok()
	c.delete(maps+"/c", `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`).ok()
	c.delete(maps+dry+"&labelSelector=a%3Db", "").ok()
	c.post(maps+dry, configMap("c", "")).fails(409, metav1.StatusReasonAlreadyExists, "")
	c.put(maps+"/c"+dry, configMap("c", `"resourceVersion":"1"`)).fails(409, metav1.StatusReasonConflict, "")
	require.JSONEq(t, string(before.body), string(c.get(maps).ok().body), "not even the list's revision has moved")

	service := func(name, ip string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + name + `"},"spec":{` + ip + `"ports":[{"port":80}]}}`
	}
	const services = "/api/v1/namespaces/default/services"
	shown, _, _ := unstructured.NestedString(c.post(services+dry, service("s", "")).ok().object().Object, "spec", "clusterIP")
	require.NotEmpty(t, shown)
	for range 3 {
		c.post(services+dry, service("s", `"clusterIP":"`+shown+`",`)).ok()
	}
	c.post(services, service("s", `"clusterIP":"`+shown+`",`)).ok()
	c.post(services+dry, service("t", `"clusterIP":"`+shown+`",`)).fails(422, metav1.StatusReasonInvalid, "allocated")
}

func TestScale(t *testing.T) {
	_, c := start(t)
	c.post(deployments, deployment("d", `"replicas":0`)).ok()
	path := deployments + "/d/scale"
	view := c.get(path).ok().object()
	require.Equal(t, "Scale", view.GetKind())
	require.Equal(t, "autoscaling/v1", view.GetAPIVersion())
	c.patch(path, mergePatch, `{"spec":{"replicas":3}}`).ok()
	scaled := c.get(deployments + "/d").object()
	replicas, _, _ := unstructured.NestedInt64(scaled.Object, "spec", "replicas")
	require.EqualValues(t, 3, replicas)
	require.EqualValues(t, 2, scaled.GetGeneration())
	require.Equal(t, []string{"kontiki Update scale apps/v1"}, ownersOfReplicas(scaled))

	stale := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d","resourceVersion":"` + view.GetResourceVersion() + `"},"spec":{"replicas":9}}`
	c.put(path, stale).fails(409, metav1.StatusReasonConflict, "the object has been modified")
	c.put(path, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":-1}}`).fails(422, metav1.StatusReasonInvalid, "spec.replicas")
	c.get(deployments+"/none/scale").fails(404, metav1.StatusReasonNotFound, "")
}
