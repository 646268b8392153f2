package apiserver_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
		"down":      {down, `Post "https://127.0.0.1:1/hook?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused`, false},
		"slow":      {slowPlace, "context deadline exceeded", false},
		"stranger":  {stranger, "x509: certificate signed by unknown authority", false},
		"bundle":    {unknown, "unable to load root certificates", false},
		"nowhere":   {nowhere, `Post "https://nowhere.default.svc:443/?timeout=10s": service "nowhere" not found`, false},
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
					m.TimeoutSeconds, m.FailurePolicy = ptr[int32](10), &failure
					if name == "slow" {
						m.TimeoutSeconds = ptr[int32](1)
					}
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
