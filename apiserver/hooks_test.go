package apiserver_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
