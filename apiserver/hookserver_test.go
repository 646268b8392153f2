package apiserver_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
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
	require.Eventually(c.t, ok, time.Minute, 5*time.Millisecond)
}

// patchOf is a mutating hook's answer.
func patchOf(operations string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(operations), PatchType: ptr(admissionv1.PatchTypeJSONPatch)}
}
