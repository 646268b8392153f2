package apiserver_test

import (
	"context"
	"crypto/x509/pkix"
	"testing"

	"github.com/stretchr/testify/require"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/pki"
)

// Questions are answered, in JSON and in protobuf (client-go's), and nothing is stored.
func TestReviews(t *testing.T) {
	cluster, c := start(t)
	ctx := context.Background()
	config := cluster.REST(pki.Admin)
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	self, err := set.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Contains(t, self.Status.UserInfo.Groups, "system:masters")

	may := func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		review, err := set.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		require.NoError(t, err)
		return review.Status.Allowed
	}
	pods := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "pods"}
	require.True(t, may(authorizationv1.SubjectAccessReviewSpec{User: "x", Groups: []string{"system:masters"}, ResourceAttributes: pods}))
	require.False(t, may(authorizationv1.SubjectAccessReviewSpec{User: "x", ResourceAttributes: pods}))
	require.True(t, may(authorizationv1.SubjectAccessReviewSpec{User: "x", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/readyz", Verb: "get"}}))

	const authorization = "/apis/authorization.k8s.io/v1/"
	c.post(authorization+"subjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"x"}}`).
		fails(422, metav1.StatusReasonInvalid, "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	c.do("POST", authorization+"subjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"x","nonResourceAttributes":{"path":"/","verb":"get"}}}`,
		"Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").fails(406, metav1.StatusReasonNotAcceptable, "application/json")
	rules := c.post(authorization+"selfsubjectrulesreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"default"}}`).ok()
	require.Contains(t, string(rules.body), `"verbs":["*"]`)
	token := c.post("/apis/authentication.k8s.io/v1/tokenreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}`).ok()
	require.NotContains(t, string(token.body), `"authenticated":true`)
	require.Equal(t, 405, c.get(authorization+"subjectaccessreviews").code)
}

// Everybody with a name may ask about themselves.
func TestSelfReviewsOfAnybody(t *testing.T) {
	cluster, _ := start(t)
	config := cluster.REST(pki.Admin)
	certificate, key := issue(t, cluster.Dir+"/pki/ca.crt", cluster.Dir+"/pki/ca.key", pkix.Name{CommonName: "jane", Organization: []string{"dev"}})
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = certificate, key
	c := clientFor(t, config)
	self := c.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`).ok()
	require.Contains(t, string(self.body), `"username":"jane"`)
	can := c.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",
		"spec":{"resourceAttributes":{"verb":"list","resource":"pods"}}}`).ok()
	require.Contains(t, string(can.body), `"allowed":false`)
	c.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", "{}").fails(403, metav1.StatusReasonForbidden, "cannot create resource")
}

func TestComponentStatuses(t *testing.T) {
	_, c := start(t)
	list := c.get("/api/v1/componentstatuses").ok().object()
	require.Equal(t, "ComponentStatusList", list.GetKind())
	require.Equal(t, 3, len(list.Object["items"].([]any)))
	require.Contains(t, string(c.get("/api/v1/componentstatuses/etcd-0").ok().body), `"type":"Healthy"`)
	c.get("/api/v1/componentstatuses/nobody").fails(404, metav1.StatusReasonNotFound, "")
	table := c.get("/api/v1/componentstatuses", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").ok()
	require.Contains(t, string(table.body), `["scheduler","Healthy","ok",""]`)
}

// The old way to bind a pod is the new one by another name.
func TestBindings(t *testing.T) {
	cluster, c := start(t)
	const bindings = "/api/v1/namespaces/default/bindings"
	c.post("/api/v1/namespaces/default/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"schedulerName":"nobody","containers":[{"name":"c","image":"i"}]}}`).ok()
	body := `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`
	require.Equal(t, metav1.StatusSuccess, c.post(bindings, body).ok().status().Status)
	pod, err := kubernetes.NewForConfigOrDie(cluster.REST(pki.Admin)).CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "n", pod.Spec.NodeName)
	require.Equal(t, corev1.PodScheduled, pod.Status.Conditions[0].Type)
	c.post(bindings, body).fails(409, metav1.StatusReasonConflict, "already assigned")
}

// One autoscaler, two versions.
func TestAutoscalerVersions(t *testing.T) {
	_, c := start(t)
	const v1, v2 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	c.post(v1, `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,
		"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`).ok()
	require.Contains(t, string(c.get(v2+"/h").ok().body), `"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]`)
	c.patch(v2+"/h", mergePatch, `{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":7}}}}`).ok()
	old := c.get(v1 + "/h").ok().object()
	require.Contains(t, old.GetAnnotations()["autoscaling.alpha.kubernetes.io/behavior"], `"stabilizationWindowSeconds":7`)
	c.patch(v1+"/h", mergePatch, `{"spec":{"maxReplicas":4}}`).ok()
	now := c.get(v2 + "/h").ok()
	require.Contains(t, string(now.body), `"stabilizationWindowSeconds":7`)
	require.Contains(t, string(now.body), `"maxReplicas":4`)
	require.Empty(t, now.object().GetAnnotations())
}

// CBOR is served to those who ask for it, read from those who send it, and accepted as an applied configuration.
func TestCBOR(t *testing.T) {
	_, c := start(t)
	const cbor = "application/cbor"
	encode := func(name, value string) string {
		data, err := direct.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"k": value}})
		require.NoError(t, err)
		return string(data)
	}
	decode := func(a answer) (out map[string]any) {
		require.Equal(t, cbor, a.header.Get("Content-Type"), string(a.body))
		require.NoError(t, direct.Unmarshal(a.body, &out))
		return out
	}
	require.Equal(t, "ConfigMap", decode(c.do("POST", maps, encode("c", "1"), "Content-Type", cbor, "Accept", cbor).ok())["kind"])
	require.Equal(t, map[string]any{"k": "2"}, decode(c.do("PUT", maps+"/c", encode("c", "2"), "Content-Type", cbor, "Accept", cbor).ok())["data"])
	applied := c.do("PATCH", maps+"/c?fieldManager=m&force=true", encode("c", "3"), "Content-Type", "application/apply-patch+cbor").ok().object()
	require.Equal(t, map[string]any{"k": "3"}, applied.Object["data"])
	list := decode(c.get(maps+"?fieldSelector=metadata.name%3Dc", "Accept", cbor).ok())
	require.Equal(t, "ConfigMapList", list["kind"])
	require.Len(t, list["items"], 1)
	rows := decode(c.get(maps, "Accept", "application/cbor;as=Table;v=v1;g=meta.k8s.io").ok())
	require.Equal(t, "Table", rows["kind"])
	require.Equal(t, "Status", decode(c.get(maps+"/nope", "Accept", cbor))["kind"])
	c.do("POST", maps, "\xd9\xd9\xf7\xa1", "Content-Type", cbor).fails(400, metav1.StatusReasonBadRequest, "")
	c.do("PATCH", maps+"/c?fieldManager=m", "\xff", "Content-Type", "application/apply-patch+cbor").fails(400, metav1.StatusReasonBadRequest, "error decoding patch")
	unknown, err := direct.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "d"}, "nope": 1})
	require.NoError(t, err)
	c.do("POST", maps+"?fieldValidation=Strict", string(unknown), "Content-Type", cbor).fails(400, metav1.StatusReasonBadRequest, "unknown field")

	watched := c.get(maps+"?watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dc", "Accept", "application/cbor-seq").ok()
	require.Equal(t, "application/cbor-seq", watched.header.Get("Content-Type"))
	var event map[string]any
	require.NoError(t, direct.Unmarshal(watched.body, &event))
	require.Equal(t, "ADDED", event["type"])
}

// What Kubernetes advises against says so in every answer.
func TestDeprecatedKindsWarn(t *testing.T) {
	_, c := start(t)
	require.Equal(t, `299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`, c.get("/api/v1/endpoints").ok().header.Get("Warning"))
	require.Equal(t, `299 - "v1 ComponentStatus is deprecated in v1.19+"`, c.get("/api/v1/componentstatuses").ok().header.Get("Warning"))
	require.Empty(t, c.get(maps).ok().header.Get("Warning"))
}
