package apiserver_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	mutatingPath   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	validatingPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	secretsPath    = "/api/v1/namespaces/default/secrets"
)

// marker is the name of the objects by which hookUp finds out that a hook is in use. No test's own answer sees them.
const marker = "hook-marker"

// hookServer is a webhook: an HTTPS server that answers reviews, and notes them.
type hookServer struct {
	*httptest.Server
	ca []byte

	mu      sync.Mutex // guards what follows
	answer  func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	reviews []admissionv1.AdmissionRequest
	markers int
}

// newHook starts a webhook. answer may return nil, which allows.
func newHook(t *testing.T, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *hookServer {
	h := &hookServer{answer: answer}
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(h.Close)
	h.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return h
}

// ServeHTTP implements http.Handler.
func (h *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	answer := h.answer
	isMarker := strings.HasPrefix(review.Request.Name, marker)
	if isMarker {
		h.markers++
	} else {
		h.reviews = append(h.reviews, *review.Request)
	}
	h.mu.Unlock()
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if !isMarker && answer != nil {
		if own := answer(review.Request); own != nil {
			response = own
		}
	}
	if response.UID == "" {
		response.UID = review.Request.UID
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// seen returns the reviews since the last time.
func (h *hookServer) seen() []admissionv1.AdmissionRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.reviews
	h.reviews = nil
	return out
}

func (h *hookServer) marked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.markers
}

func (h *hookServer) place() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{URL: &h.URL, CABundle: h.ca}
}

// rulesFor are for all that is done to some resources of the core group.
func rulesFor(resources ...string) []registrationv1.RuleWithOperations {
	return []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.OperationAll},
		Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
	}}
}

func ptr[T any](v T) *T { return &v }

// mutatingHook is a hook for ConfigMaps with what most tests want.
func mutatingHook(name string, place registrationv1.WebhookClientConfig) registrationv1.MutatingWebhook {
	return registrationv1.MutatingWebhook{
		Name: name + ".test.example", ClientConfig: place, Rules: rulesFor("configmaps"), SideEffects: ptr(registrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr[int32](10),
	}
}

func validatingHook(name string, place registrationv1.WebhookClientConfig) registrationv1.ValidatingWebhook {
	return registrationv1.ValidatingWebhook{
		Name: name + ".test.example", ClientConfig: place, Rules: rulesFor("configmaps"), SideEffects: ptr(registrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr[int32](10),
	}
}

// mutatingConfig registers hooks, which need not be in use yet.
func (c *client) mutatingConfig(name string, hooks ...registrationv1.MutatingWebhook) {
	c.t.Helper()
	c.register(mutatingPath, &registrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks,
	})
}

func (c *client) validatingConfig(name string, hooks ...registrationv1.ValidatingWebhook) {
	c.t.Helper()
	c.register(validatingPath, &registrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks,
	})
}

func (c *client) register(path string, config any) {
	c.t.Helper()
	body, err := json.Marshal(config)
	require.NoError(c.t, err)
	c.post(path, string(body)).ok()
}

// inUse waits until a hook is asked about what is posted at a path: the server follows configurations, it does not wait for
// them to be followed.
func (c *client) inUse(h *hookServer) {
	c.t.Helper()
	before := h.marked()
	c.until(func() bool {
		c.post(maps+"?dryRun=All", configMap(marker, ""))
		return h.marked() > before
	})
}

// until polls, with a deadline.
func (c *client) until(ok func() bool) {
	c.t.Helper()
	require.Eventually(c.t, ok, 30*time.Second, 5*time.Millisecond)
}

// patchOf is a mutating hook's answer.
func patchOf(operations string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(operations), PatchType: ptr(admissionv1.PatchTypeJSONPatch)}
}

func TestMutatingWebhooks(t *testing.T) {
	_, c := start(t)
	first := newHook(t, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if r.Operation == admissionv1.Delete && r.Name == "m" {
			return nil
		}
		answer := patchOf(`[{"op":"add","path":"/data/first","value":"was here"}]`)
		answer.Warnings = []string{"first warns"}
		return answer
	})
	second := newHook(t, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if !strings.Contains(string(r.Object.Raw), "was here") {
			return nil
		}
		return patchOf(`[{"op":"add","path":"/data/second","value":"saw first"}]`)
	})
	c.mutatingConfig("b", mutatingHook("second", second.place())) // asked in the order of names, not of creation
	c.mutatingConfig("a", mutatingHook("first", first.place()))
	c.inUse(first)
	c.inUse(second)

	created := c.post(maps+"?fieldManager=me&fieldValidation=Strict", configMap("m", "")).ok()
	require.Equal(t, map[string]any{"k": "v", "first": "was here", "second": "saw first"}, created.object().Object["data"])
	require.Equal(t, []string{`299 - "first warns"`}, created.header["Warning"])
	require.Equal(t, created.object().Object["data"], c.get(maps + "/m").ok().object().Object["data"])

	review := first.seen()[0]
	require.Equal(t, admissionv1.Create, review.Operation)
	require.Equal(t, metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, review.Kind)
	require.Equal(t, metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, review.Resource)
	require.Equal(t, "m default", review.Name+" "+review.Namespace)
	require.Equal(t, "kubernetes-admin", review.UserInfo.Username)
	require.False(t, *review.DryRun)
	require.Contains(t, string(review.Object.Raw), `"kind":"ConfigMap"`)
	require.Empty(t, review.OldObject.Raw)
	require.JSONEq(t, `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"me","fieldValidation":"Strict"}`, string(review.Options.Raw))

	second.seen()
	c.delete(maps+"/m", "").ok()
	require.Len(t, second.seen(), 1)
	gone := first.seen()
	require.Equal(t, admissionv1.Delete, gone[0].Operation)
	require.Empty(t, gone[0].Object.Raw)
	require.Contains(t, string(gone[0].OldObject.Raw), "was here")

	c.post(maps, configMap("kept", "")).ok()
	c.delete(maps+"/kept", "").fails(500, metav1.StatusReasonInternalError, `admission webhook "first.test.example" attempted to modify the object, which is not supported for this operation`)
}

// A hook that wishes it is asked once more, when others have changed the object after it; never a third time.
func TestReinvocation(t *testing.T) {
	_, c := start(t)
	count := func(key string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			var obj struct{ Data map[string]string }
			if err := json.Unmarshal(r.Object.Raw, &obj); err != nil {
				return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
			}
			return patchOf(fmt.Sprintf(`[{"op":"add","path":"/data/%s","value":"%sx"}]`, key, obj.Data[key]))
		}
	}
	again, once, last := newHook(t, count("again")), newHook(t, count("once")), newHook(t, count("last"))
	hook := mutatingHook("again", again.place())
	hook.ReinvocationPolicy = ptr(registrationv1.IfNeededReinvocationPolicy)
	lastHook := mutatingHook("last", last.place())
	lastHook.ReinvocationPolicy = ptr(registrationv1.IfNeededReinvocationPolicy)
	c.mutatingConfig("a", hook, mutatingHook("once", once.place()), lastHook)
	for _, h := range []*hookServer{again, once, last} {
		c.inUse(h)
	}
	data := c.post(maps, configMap("m", "")).ok().object().Object["data"]
	// The change that "again" makes in the second round comes after "last" saw the object: so it is asked again as well.
	require.Equal(t, map[string]any{"k": "v", "again": "xx", "once": "x", "last": "xx"}, data)
}

func TestValidatingWebhooks(t *testing.T) {
	_, c := start(t)
	hook := newHook(t, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		switch r.Name {
		case "plain":
			return &admissionv1.AdmissionResponse{}
		case "words":
			return &admissionv1.AdmissionResponse{Warnings: []string{"careful"}, Result: &metav1.Status{Message: "not on Mondays", Reason: "Monday", Code: 418}}
		case "reason":
			return &admissionv1.AdmissionResponse{Result: &metav1.Status{Reason: metav1.StatusReasonConflict, Code: 200}}
		}
		return nil
	})
	c.validatingConfig("v", validatingHook("v", hook.place()))
	c.inUse(hook)

	c.post(maps, configMap("plain", "")).fails(400, "", `admission webhook "v.test.example" denied the request without explanation`)
	words := c.post(maps, configMap("words", ""))
	words.fails(418, "Monday", `admission webhook "v.test.example" denied the request: not on Mondays`)
	require.Equal(t, []string{`299 - "careful"`}, words.header["Warning"])
	c.post(maps, configMap("reason", "")).fails(400, metav1.StatusReasonConflict, `admission webhook "v.test.example" denied the request: Conflict`)
	c.post(maps, configMap("fine", "")).ok()
	require.Equal(t, 404, c.get(maps+"/words").code)

	hook.seen()
	c.patch(maps+"/fine", mergePatch, `{"data":{"k":"w"}}`).ok()
	update := hook.seen()[0]
	require.Equal(t, admissionv1.Update, update.Operation)
	require.Contains(t, string(update.Object.Raw), `"k":"w"`)
	require.Contains(t, string(update.OldObject.Raw), `"k":"v"`)
	require.Contains(t, string(update.OldObject.Raw), `"kind":"ConfigMap"`)
}

// What a hook does to a request when it cannot be asked, or answers nonsense, under both failure policies.
func TestBrokenWebhooks(t *testing.T) {
	cluster, c := start(t)
	speak := func(text string, code int) registrationv1.WebhookClientConfig {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
		}))
		t.Cleanup(server.Close)
		return registrationv1.WebhookClientConfig{URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	}
	saying := func(response *admissionv1.AdmissionResponse) registrationv1.WebhookClientConfig {
		return newHook(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return response }).place()
	}
	slow := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client has gone
		<-r.Context().Done()
	}))
	slow.StartTLS()
	t.Cleanup(slow.Close)
	slowPlace := registrationv1.WebhookClientConfig{URL: &slow.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: slow.Certificate().Raw})}
	stranger := newHook(t, nil).place()
	stranger.CABundle = cluster.PKI.CA() // which has not signed it
	unknown := newHook(t, nil).place()
	unknown.CABundle = []byte("no certificate")
	down := registrationv1.WebhookClientConfig{URL: ptr("https://127.0.0.1:1/hook")}
	nowhere := registrationv1.WebhookClientConfig{Service: &registrationv1.ServiceReference{Namespace: "default", Name: "nowhere"}}

	for name, broken := range map[string]struct {
		place    registrationv1.WebhookClientConfig
		text     string // of the error
		mutating bool   // only these
	}{
		"down":      {down, `Post "https://127.0.0.1:1/hook?timeout=1s": dial tcp 127.0.0.1:1: connect: connection refused`, false},
		"slow":      {slowPlace, "context deadline exceeded", false},
		"stranger":  {stranger, "x509: certificate signed by unknown authority", false},
		"bundle":    {unknown, "unable to load root certificates", false},
		"nowhere":   {nowhere, `Post "https://nowhere.default.svc:443/?timeout=1s": service "nowhere" not found`, false},
		"notfound":  {speak("no such page", 404), "the server could not find the requested resource", false},
		"teapot":    {speak("no", 500), "an error on the server", false},
		"redirect":  {speak("", 307), "the server responded with the status code 307", false},
		"nojson":    {speak("hello", 200), "json parse error", false},
		"noanswer":  {speak(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 200), "webhook response was absent", false},
		"wronguid":  {saying(&admissionv1.AdmissionResponse{Allowed: true, UID: "another"}), `got "another"`, false},
		"nokind":    {speak(`{"response":{"allowed":true}}`, 200), "expected response.uid", false},
		"huge":      {speak(`"`+strings.Repeat("x", 9<<20)+`"`, 200), "the answer is larger than 8388608 bytes", false},
		"nopatch":   {saying(patchOf("{")), "received undecodable patch in webhook response", true},
		"patchtype": {saying(&admissionv1.AdmissionResponse{Allowed: true, Patch: []byte("[]")}), "response.patch but not response.patchType", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &client{t: t, http: c.http, base: c.base}
			for _, mutating := range []bool{true, false} {
				if broken.mutating && !mutating {
					continue
				}
				config := name + map[bool]string{true: "-m", false: "-v"}[mutating]
				policy := func(failure registrationv1.FailurePolicyType) (path, body string) {
					m := mutatingHook(config, broken.place)
					m.TimeoutSeconds, m.FailurePolicy = ptr[int32](1), &failure
					// Only for objects of this test: the others run beside.
					m.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"for": config}}
					return brokenConfig(t, config, m, mutating)
				}
				labels := fmt.Sprintf(`"labels":{"for":%q}`, config)
				path, body := policy(registrationv1.Fail)
				c.post(path, body).ok()
				var refused answer
				c.until(func() bool {
					refused = c.post(maps+"?dryRun=All", configMap(config, labels))
					return refused.code != 201
				})
				refused.fails(500, metav1.StatusReasonInternalError, fmt.Sprintf(`Internal error occurred: failed calling webhook "%s.test.example": `, config))
				require.Contains(t, refused.status().Message, broken.text)
				require.Equal(t, 404, c.get(maps+"/"+config).code)

				_, body = policy(registrationv1.Ignore)
				c.patch(path+"/"+config, mergePatch, body).ok()
				c.until(func() bool { return c.post(maps+"?dryRun=All", configMap(config, labels)).code == 201 })
			}
		})
	}
}

// brokenConfig is a configuration with one hook of either kind.
func brokenConfig(t *testing.T, name string, m registrationv1.MutatingWebhook, mutating bool) (path, body string) {
	meta := metav1.ObjectMeta{Name: name}
	var config any = &registrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: meta, Webhooks: []registrationv1.MutatingWebhook{m},
	}
	path = mutatingPath
	if !mutating {
		v := validatingHook(name, m.ClientConfig)
		v.TimeoutSeconds, v.FailurePolicy, v.ObjectSelector = m.TimeoutSeconds, m.FailurePolicy, m.ObjectSelector
		path, config = validatingPath, &registrationv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: meta, Webhooks: []registrationv1.ValidatingWebhook{v},
		}
	}
	text, err := json.Marshal(config)
	require.NoError(t, err)
	return path, string(text)
}

// A hook with side effects is never asked in a dry run, and the run is refused.
func TestWebhooksAndDryRun_AP45(t *testing.T) {
	_, c := start(t)
	hook := newHook(t, nil)
	v := validatingHook("v", hook.place())
	v.SideEffects = ptr(registrationv1.SideEffectClassNoneOnDryRun)
	c.validatingConfig("v", v)
	c.inUse(hook)
	c.post(maps+"?dryRun=All", configMap("m", "")).ok()
	require.True(t, *hook.seen()[0].DryRun)
	require.Equal(t, 404, c.get(maps+"/m").code)

	some := validatingHook("some", hook.place())
	some.SideEffects = ptr(registrationv1.SideEffectClassSome)
	body, err := json.Marshal(registrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: "some"}, Webhooks: []registrationv1.ValidatingWebhook{some},
	})
	require.NoError(t, err)
	c.post(validatingPath, string(body)).fails(422, metav1.StatusReasonInvalid, "sideEffects")
}

// Rules, selectors, conditions and versions decide which hooks see a request, and as what.
func TestWebhookMatching(t *testing.T) {
	_, c := start(t)
	hook := newHook(t, nil)
	seen := func() []string {
		var out []string
		for _, r := range hook.seen() {
			text := fmt.Sprintf("%s %s %s %s", r.Operation, r.Resource.Resource, r.SubResource, r.Name)
			if *r.RequestKind != r.Kind {
				text += " as " + r.Kind.Version
			}
			out = append(out, text)
		}
		slices.Sort(out)
		return out
	}
	v := validatingHook("v", hook.place())
	v.Rules = append(rulesFor("configmaps", "secrets", "pods/*", "namespaces"), registrationv1.RuleWithOperations{
		Operations: []registrationv1.OperationType{registrationv1.Create},
		Rule:       registrationv1.Rule{APIGroups: []string{"autoscaling"}, APIVersions: []string{"v2"}, Resources: []string{"*"}},
	})
	v.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "exempt", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	v.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "exempt", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	v.MatchConditions = []registrationv1.MatchCondition{
		{Name: "not-leases", Expression: `request.resource.resource != "leases"`},
		{Name: "not-unseen", Expression: `oldObject != null || !has(object.metadata.name) || object.metadata.name != "unseen"`},
		{Name: "may", Expression: `authorizer.group("").resource("configmaps").namespace("default").check("create").allowed()`},
	}
	c.validatingConfig("v", v)
	c.inUse(hook)

	c.post("/api/v1/namespaces", `{"metadata":{"name":"out","labels":{"exempt":"yes"}}}`).ok()
	c.post("/api/v1/namespaces", `{"metadata":{"name":"in"}}`).ok()
	require.Equal(t, []string{"CREATE namespaces  in"}, seen())
	c.post("/api/v1/namespaces/out/configmaps", configMap("m", "")).ok()
	c.post(maps, configMap("exempt", `"labels":{"exempt":"yes"}`)).ok()
	c.post(maps, configMap("unseen", "")).ok()
	c.post(secretsPath, `{"metadata":{"name":"s"}}`).ok()
	require.Equal(t, []string{"CREATE secrets  s"}, seen())
	c.patch(maps+"/exempt", mergePatch, `{"metadata":{"labels":{"exempt":null}}}`).ok() // one of both is enough
	require.Equal(t, []string{"UPDATE configmaps  exempt"}, seen())

	scaler := `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`
	c.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", scaler).ok()
	require.Equal(t, []string{"CREATE horizontalpodautoscalers  h as v2"}, seen())

	c.delete(maps+"?labelSelector=none!%3Dx", "").ok()
	require.Contains(t, seen(), "DELETE configmaps  unseen")
}

// Nobody locks themselves out: configurations of webhooks and access reviews are never refused by webhooks.
func TestWebhooksDoNotSeeThemselves(t *testing.T) {
	_, c := start(t)
	hook := newHook(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{}
	})
	v := validatingHook("v", hook.place())
	v.Rules[0].APIGroups, v.Rules[0].APIVersions, v.Rules[0].Resources = []string{"*"}, []string{"*"}, []string{"*/*"}
	c.validatingConfig("v", v)
	c.inUse(hook)
	c.post(maps, configMap("m", "")).fails(400, "", "denied the request")
	c.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"path":"/x","verb":"get"}}}`).ok()
	c.patch(validatingPath+"/v", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`).ok()
	c.delete(validatingPath+"/v", "").ok()
	c.until(func() bool { return c.post(maps+"?dryRun=All", configMap("m", "")).code == 201 })
}

// A change of configurations is in use on every server a moment later, and a restarted server lets nothing pass before it
// has read them.
func TestWebhooksOnEveryServer(t *testing.T) {
	_, serve := sharedStore(t)
	a, b := serve(), serve()
	hook := newHook(t, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{}
	})
	a.validatingConfig("v", validatingHook("v", hook.place()))
	began := time.Now()
	a.inUse(hook)
	b.inUse(hook)
	t.Logf("in use on both after %v", time.Since(began))
	fresh := serve()
	for _, server := range []*client{a, b, fresh} {
		server.post(maps, configMap("m", "")).fails(400, "", "denied the request")
	}
}
