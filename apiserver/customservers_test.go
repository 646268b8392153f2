package apiserver_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Whoever has seen a definition established finds its resource on every server, at once; and its end on every server
// soon, which ends watches.
func TestCustomResourcesOnEveryServer(t *testing.T) {
	_, serve := sharedStore(t)
	servers := []*client{serve(), serve(), serve()}
	for i, c := range servers {
		c.post(definitionsPath, boatDefinition("", `"masts":{"type":"integer"}`)).ok()
		for j, other := range servers {
			other.post(boats, boat(fmt.Sprint("b", j), "")).ok()
		}
		require.Len(t, servers[(i+1)%3].get(boats).ok().object().Object["items"], 3)
		events := servers[(i+2)%3].watch(boats + "?watch=true&resourceVersion=0")
		for range 3 {
			require.Equal(t, "ADDED", c.next(events).Type)
		}
		c.delete(definitionsPath+"/boats.example.com", "").ok()
		for range 3 {
			require.Equal(t, "DELETED", c.next(events).Type)
		}
		select {
		case _, more := <-events:
			require.False(t, more, "the watch ends")
		case <-time.After(frameTimeout):
			require.FailNow(t, "the watch goes on")
		}
		for _, other := range servers {
			require.Eventually(t, func() bool {
				return other.get(definitionsPath+"/boats.example.com").code == 404 && other.get(boats).code == 404
			}, frameTimeout, 5*time.Millisecond)
		}
	}
}

// Nobody creates instances of a definition that ends, and it ends when the last instance has gone.
func TestDefinitionWaitsForItsInstances(t *testing.T) {
	_, c := start(t)
	c.post(definitionsPath, boatDefinition("", "")).ok()
	c.post(boats, `{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"held","finalizers":["example.com/hold"]}}`).ok()
	c.delete(definitionsPath+"/boats.example.com", "").ok()
	require.Eventually(t, func() bool { return c.post(boats, boat("late", "")).code == 403 }, frameTimeout, 5*time.Millisecond)
	require.Eventually(t, func() bool { return c.get(boats+"/held").ok().object().GetDeletionTimestamp() != nil }, frameTimeout, 5*time.Millisecond)
	ending := c.get(definitionsPath + "/boats.example.com").ok().object()
	require.Contains(t, fmt.Sprint(ending.Object["status"]), "InstanceDeletionPending")
	c.patch(definitionsPath+"/boats.example.com", mergePatch, `{"metadata":{"labels":{"still":"mine"}}}`).ok()
	c.patch(boats+"/held", mergePatch, `{"metadata":{"finalizers":null}}`).ok()
	require.Eventually(t, func() bool { return c.get(definitionsPath+"/boats.example.com").code == 404 }, frameTimeout, 5*time.Millisecond)
}

// AP-31 of definitions: 350 KB of JSON, which are 1.4 MB of YAML, applied by the server; with kubectl's annotation they
// are too large; and beyond the limit of a request it says so.
func TestAP31_BigDefinitions(t *testing.T) {
	_, c := start(t)
	field := `"field%d":{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("words ", 30) + `"},"b":{"type":"array","items":{"type":"string"}}}},`
	properties := func(size int) string {
		var out strings.Builder
		for i := 0; out.Len() < size; i++ {
			fmt.Fprintf(&out, field, i)
		}
		return out.String() + strings.Repeat(`"deep":{"type":"object","properties":{`, 15) + `"end":{"type":"string"}` + strings.Repeat("}}", 15)
	}
	big := boatDefinition("", properties(350<<10))
	for range 2 {
		c.patch(definitionsPath+"/boats.example.com?fieldManager=me", applyPatch, big).ok()
	}
	c.post(boats, boat("a", `,"spec":{"field7":{"a":"x"},"nowhere":1}`)).ok()
	require.Equal(t, map[string]any{"field7": map[string]any{"a": "x"}}, c.get(boats + "/a").ok().object().Object["spec"])
	annotated, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"kubectl.kubernetes.io/last-applied-configuration": big}}})
	require.NoError(t, err)
	c.patch(definitionsPath+"/boats.example.com", mergePatch, string(annotated)).fails(422, metav1.StatusReasonInvalid, "metadata.annotations: Too long: may not be more than 262144 bytes")
	c.post(definitionsPath, boatDefinition("", properties(4<<20))).fails(413, metav1.StatusReasonRequestEntityTooLarge, "")
	c.get(boats + "/a").ok()
}

// converter is a conversion webhook. It renames spec.size to spec.length on the way from v1 to v2, and back.
type converter struct {
	*httptest.Server
	lie atomic.Pointer[func(*unstructured.Unstructured)] // done to what it answers

	reviews, objects atomic.Int64 // that it was asked for
}

func newConverter(t *testing.T) *converter {
	c := &converter{}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.reviews.Add(1)
		c.objects.Add(int64(len(review.Request.Objects)))
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(raw.Raw); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			c.convert(u, review.Request.DesiredAPIVersion)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: u})
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *converter) convert(u *unstructured.Unstructured, to string) {
	from, into := "size", "length"
	if to == "example.com/v1" {
		from, into = into, from
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	if value, ok := spec[from]; ok {
		spec[into] = value
		delete(spec, from)
		u.Object["spec"] = spec
	}
	u.SetAPIVersion(to)
	if lie := c.lie.Load(); lie != nil {
		(*lie)(u)
	}
}

func (c *converter) definition() string {
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	encoded, _ := json.Marshal(bundle)
	conversion := fmt.Sprintf(`"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%s}}},"versions":[`, c.URL, encoded)
	second := `{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"length":{"type":"integer"}}}}}}},`
	return strings.Replace(boatDefinition("", `"size":{"type":"integer"}`), `"versions":[`, conversion+second, 1)
}

// Versions that a webhook converts; it may be down, or lie.
func TestConversionByWebhook(t *testing.T) {
	_, c := start(t)
	hook := newConverter(t)
	const second = "/apis/example.com/v2/namespaces/default/boats"
	c.post(definitionsPath, hook.definition()).ok()
	c.post(boats, boat("a", `,"spec":{"size":14}`)).ok()
	shown := c.get(second + "/a").ok().object()
	require.Equal(t, map[string]any{"length": int64(14)}, shown.Object["spec"])
	made := c.post(second, strings.Replace(boat("b", `,"spec":{"length":3}`), "/v1", "/v2", 1)).ok().object()
	require.Equal(t, map[string]any{"length": int64(3)}, made.Object["spec"])
	require.Equal(t, map[string]any{"size": int64(3)}, c.get(boats + "/b").ok().object().Object["spec"])
	require.Len(t, c.get(second).ok().object().Object["items"], 2)
	c.patch(second+"/a", mergePatch, `{"spec":{"length":15}}`).ok()
	require.Equal(t, map[string]any{"size": int64(15)}, c.get(boats + "/a").ok().object().Object["spec"])

	for name, lie := range map[string]func(*unstructured.Unstructured){
		"the version":  func(u *unstructured.Unstructured) { u.SetAPIVersion("example.com/v9") },
		"the name":     func(u *unstructured.Unstructured) { u.SetName("other") },
		"the identity": func(u *unstructured.Unstructured) { u.SetUID("other") },
	} {
		hook.lie.Store(&lie)
		c.post(boats, boat("lied", `,"spec":{"size":1}`)).ok()
		refused := c.get(second + "/lied")
		require.Equal(t, 500, refused.code, "%s: %s", name, refused.body)
		require.True(t, bytes.Contains(refused.body, []byte("invalid converted object")), "%s: %s", name, refused.body)
		c.delete(boats+"/lied", "").ok()
	}
	finalizers := func(u *unstructured.Unstructured) {
		u.SetFinalizers([]string{"example.com/sneaky"})
		u.SetLabels(map[string]string{"by": "hook"})
	}
	hook.lie.Store(&finalizers)
	c.post(boats, boat("c", "")).ok()
	kept := c.get(second + "/c").ok().object()
	require.Empty(t, kept.GetFinalizers(), "of metadata, labels and annotations alone are the webhook's")
	require.Equal(t, map[string]string{"by": "hook"}, kept.GetLabels())

	hook.Close()
	c.post(boats, boat("d", "")).ok()
	require.Equal(t, 500, c.get(second+"/d").code)
	c.get(boats + "/d").ok()
}
