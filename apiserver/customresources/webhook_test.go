package customresources

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	boatsV2   = schema.GroupVersion{Group: "example.com", Version: "v2"}
	twoBoats  = `{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":%q,"namespace":"sea","uid":%q,"labels":{"a":"b"},"creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"size":1}}`
	rightMeta = map[string]any{"name": "one", "namespace": "sea", "uid": "uid-one", "labels": map[string]any{"a": "b"}, "creationTimestamp": "2020-01-01T00:00:00Z"}
)

func someBoats(t *testing.T) (out []*unstructured.Unstructured) {
	for _, name := range []string{"one", "two"} {
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON(fmt.Appendf(nil, twoBoats, name, "uid-"+name)))
		out = append(out, u)
	}
	return out
}

// hook answers a review as answer says, with the objects moved to the wanted version.
type hook func(w http.ResponseWriter, r *http.Request, review map[string]any)

func (h hook) serve(t *testing.T, patience time.Duration) (*Webhooks, *apiextensionsv1.CustomResourceDefinition) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if json.NewDecoder(r.Body).Decode(&review) != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		request := review["request"].(map[string]any)
		for _, obj := range request["objects"].([]any) {
			obj.(map[string]any)["apiVersion"] = request["desiredAPIVersion"]
		}
		review["response"] = map[string]any{"uid": request["uid"], "result": map[string]any{"status": "Success"}, "convertedObjects": request["objects"]}
		delete(review, "request")
		h(w, r, review)
	}))
	t.Cleanup(server.Close)
	hooks := NewWebhooks(nil)
	hooks.patience = patience
	t.Cleanup(hooks.Close)
	return hooks, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "boats.example.com"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v9", "v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
		}},
	}}
}

// with answers after a change of the review.
func with(change func(response map[string]any)) hook {
	return func(w http.ResponseWriter, _ *http.Request, review map[string]any) {
		response, _ := review["response"].(map[string]any)
		change(response)
		_ = json.NewEncoder(w).Encode(review)
	}
}

// object answers with a change of the first object.
func object(change func(u map[string]any)) hook {
	return with(func(response map[string]any) {
		change(response["convertedObjects"].([]any)[0].(map[string]any))
	})
}

// metadata answers with a change of the first object's metadata.
func metadata(name string, value any) hook {
	return object(func(u map[string]any) { u["metadata"].(map[string]any)[name] = value })
}

func raw(code int, body string) hook {
	return func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// What a webhook may answer, and what is said of everything else.
func TestAnswersOfWebhooks(t *testing.T) {
	const index = "returned invalid converted object at index 0: "
	for name, c := range map[string]struct {
		hook hook
		want string // of the error; none is wanted if it is empty
	}{
		"as it should be":      {with(func(map[string]any) {}), ""},
		"fewer objects":        {with(func(r map[string]any) { r["convertedObjects"] = r["convertedObjects"].([]any)[:1] }), "returned 1 objects, expected 2"},
		"no objects":           {with(func(r map[string]any) { delete(r, "convertedObjects") }), "returned 0 objects, expected 2"},
		"another uid":          {with(func(r map[string]any) { r["uid"] = "other" }), "failed: expected response.uid="},
		"no success":           {with(func(r map[string]any) { r["result"] = map[string]any{"status": "Failure", "message": "too wet"} }), "failed: too wet"},
		"no success, no words": {with(func(r map[string]any) { r["result"] = map[string]any{} }), "failed: response.result.status was '', not 'Success'"},
		"no response": {func(w http.ResponseWriter, _ *http.Request, review map[string]any) {
			delete(review, "response")
			_ = json.NewEncoder(w).Encode(review)
		}, "failed: no response provided"},
		"another kind of review": {raw(200, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`), "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got admission.k8s.io/v1, Kind=AdmissionReview"},
		"garbage":                {raw(200, "<html>"), "failed: invalid character"},
		"nothing":                {raw(200, ""), "failed: unexpected end of JSON input"},
		"an error":               {raw(500, "broken"), "failed: an error on the server (\"broken\") has prevented the request from succeeding"},
		"elsewhere":              {raw(301, ""), "failed: "},
		"too much":               {raw(200, strings.Repeat("x", 9<<20)), "failed: the answer is larger than 8388608 bytes"},
		"the old version":        {object(func(u map[string]any) { u["apiVersion"] = "example.com/v1" }), index + "invalid groupVersion (expected example.com/v2, received example.com/v1)"},
		"another kind":           {object(func(u map[string]any) { u["kind"] = "Raft" }), index + "invalid kind (expected Boat, received Raft)"},
		"no kind":                {object(func(u map[string]any) { delete(u, "kind") }), index + "Object 'Kind' is missing"},
		"no object":              {with(func(r map[string]any) { r["convertedObjects"].([]any)[0] = 7 }), index},
		"another name":           {metadata("name", "other"), index + "must have the same name: one != other"},
		"another namespace":      {metadata("namespace", "lake"), index + "must have the same namespace: sea != lake"},
		"another identity":       {metadata("uid", "other"), index + "must have the same UID: uid-one != other"},
		"no metadata":            {object(func(u map[string]any) { u["metadata"] = "none" }), "returned invalid"},
		"labels that are none":   {metadata("labels", "none"), "returned invalid metadata in object at index 0: "},
		"a number for a label":   {metadata("labels", map[string]any{"a": 1}), "returned invalid metadata in object at index 0: "},
		"a malformed label":      {metadata("labels", map[string]any{"a b": "c"}), "returned invalid metadata in object at index 0: metadata.labels: Invalid value"},
		"a malformed annotation": {metadata("annotations", map[string]any{"a b": "c"}), "returned invalid metadata in object at index 0: metadata.annotations: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			hooks, definition := c.hook.serve(t, time.Minute)
			converted, err := hooks.Convert(definition, someBoats(t), boatsV2)
			if c.want != "" {
				require.ErrorIs(t, err, ErrConversion)
				require.ErrorContains(t, err, "conversion webhook for example.com/v1, Kind=Boat "+c.want)
				return
			}
			require.NoError(t, err)
			require.Len(t, converted, 2)
			require.Equal(t, rightMeta, converted[0].Object["metadata"])
		})
	}
}

// Of metadata a webhook changes labels and annotations alone.
func TestWebhooksKeepMetadata(t *testing.T) {
	for name, value := range map[string]any{
		"finalizers": []any{"example.com/sneaky"}, "ownerReferences": []any{}, "creationTimestamp": "2021-01-01T00:00:00Z", "generation": 7,
		"resourceVersion": "7", "managedFields": []any{}, "deletionTimestamp": "2021-01-01T00:00:00Z",
	} {
		hooks, definition := metadata(name, value).serve(t, time.Minute)
		converted, err := hooks.Convert(definition, someBoats(t), boatsV2)
		require.NoError(t, err, name)
		require.Equal(t, rightMeta, converted[0].Object["metadata"], name)
	}
	hooks, definition := object(func(u map[string]any) {
		u["metadata"] = map[string]any{"name": "one", "namespace": "sea", "uid": "uid-one", "annotations": map[string]any{"by": "hook"}}
	}).serve(t, time.Minute)
	converted, err := hooks.Convert(definition, someBoats(t), boatsV2)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"by": "hook"}, converted[0].GetAnnotations())
	require.Empty(t, converted[0].GetLabels())
	require.Equal(t, rightMeta["creationTimestamp"], converted[0].Object["metadata"].(map[string]any)["creationTimestamp"])
}

// One that is slow, or not there, or speaks no version that we do; and what a stop ends.
func TestWebhooksThatDoNotAnswer(t *testing.T) {
	asked := make(chan struct{}, 1)
	silent := hook(func(_ http.ResponseWriter, r *http.Request, _ map[string]any) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	hooks, definition := silent.serve(t, 50*time.Millisecond)
	_, err := hooks.Convert(definition, someBoats(t), boatsV2)
	require.ErrorContains(t, err, "conversion webhook for example.com/v1, Kind=Boat failed: ")
	require.ErrorContains(t, err, "context deadline exceeded")

	nowhere := "https://127.0.0.1:1"
	definition.Spec.Conversion.Webhook.ClientConfig.URL = &nowhere
	_, err = hooks.Convert(definition, someBoats(t), boatsV2)
	require.ErrorContains(t, err, "connection refused")
	definition.Spec.Conversion.Webhook.ConversionReviewVersions = []string{"v9"}
	_, err = hooks.Convert(definition, someBoats(t), boatsV2)
	require.ErrorContains(t, err, "speaks [v9], and this server [v1 v1beta1]")
	require.Len(t, hooks.clients, 1)
	hooks.Forget(definition.Name)
	require.Empty(t, hooks.clients)

	<-asked
	stopped := NewWebhooks(nil)
	_, definition = silent.serve(t, time.Minute)
	failed := make(chan error)
	go func() {
		_, err := stopped.Convert(definition, someBoats(t), boatsV2)
		failed <- err
	}()
	<-asked
	stopped.Close()
	require.ErrorContains(t, <-failed, "context canceled")
}
