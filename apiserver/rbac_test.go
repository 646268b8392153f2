package apiserver_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

// bind writes a role with rules into the namespace default and binds it to a user.
func bind(c *client, name, user, rules string) {
	c.t.Helper()
	c.post(rbacPath+"namespaces/default/roles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":%s}`, name, rules)).ok()
	c.post(rbacPath+"namespaces/default/rolebindings", fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"kind":"Role","name":%q},"subjects":[{"kind":"User","name":%q}]}`, name, name, user)).ok()
}

// eventually waits until the policy of the server has followed.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, time.Millisecond)
}

func TestRoleOpensWhatItSays(t *testing.T) {
	cluster, c := start(t)
	jane := personOf(t, cluster, "jane", "dev")
	jane.get(maps).fails(403, metav1.StatusReasonForbidden, `User "jane" cannot list resource "configmaps" in API group "" in the namespace "default"`)
	bind(c, "reader", "jane", `[{"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]}]`)
	eventually(t, func() bool { return jane.get(maps).code == 200 })
	jane.get("/api/v1/namespaces/kube-system/configmaps").fails(403, metav1.StatusReasonForbidden, "")
	jane.post(maps, configMap("a", "")).fails(403, metav1.StatusReasonForbidden, "cannot create")
	jane.get("/api").ok() // system:discovery

	review := decoded[authorizationv1.SelfSubjectAccessReview](jane.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		`{"spec":{"resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"default"}}}`).ok())
	require.True(t, review.Status.Allowed)
	require.Equal(t, `RBAC: allowed by RoleBinding "reader/default" of Role "reader" to User "jane"`, review.Status.Reason)
	rules := decoded[authorizationv1.SelfSubjectRulesReview](jane.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`).ok())
	require.Contains(t, rules.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})

	c.delete(rbacPath+"namespaces/default/rolebindings/reader", "").ok()
	eventually(t, func() bool { return jane.get(maps).code == 403 })
}

// Nobody hands out what they lack, by whichever verb. (The case's rules for service accounts are in ../shared/apicases.)
func TestNoEscalation_RB01(t *testing.T) {
	cluster, c := start(t)
	jane := personOf(t, cluster, "jane")
	const roles, bindings = rbacPath + "namespaces/default/roles", rbacPath + "namespaces/default/rolebindings"
	bind(c, "author", "jane", `[{"verbs":["create","update","patch","get"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"]},
		{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`)
	eventually(t, func() bool { return jane.get(roles+"/author").code == 200 })
	jane.post(roles, `{"metadata":{"name":"ok"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`).ok()
	const secrets = `{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}`
	const lacking = `currently held:
{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`
	jane.post(roles, `{"metadata":{"name":"more"},"rules":[`+secrets+`]}`).fails(403, metav1.StatusReasonForbidden, lacking)
	jane.put(roles+"/ok", `{"metadata":{"name":"ok"},"rules":[`+secrets+`]}`).fails(403, metav1.StatusReasonForbidden, lacking)
	jane.put(roles+"/new", `{"metadata":{"name":"new"},"rules":[`+secrets+`]}`).fails(403, metav1.StatusReasonForbidden, lacking)
	jane.patch(roles+"/ok", mergePatch, `{"rules":[`+secrets+`]}`).fails(403, metav1.StatusReasonForbidden, lacking)
	jane.patch(roles+"/ok?fieldManager=x&force=true", applyPatch, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"ok"},"rules":[`+secrets+`]}`).
		fails(403, metav1.StatusReasonForbidden, lacking)
	jane.post(bindings, `{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"jane"}]}`).
		fails(403, metav1.StatusReasonForbidden, "currently held")
	jane.post(bindings, `{"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"missing"},"subjects":[{"kind":"User","name":"jane"}]}`).fails(404, metav1.StatusReasonNotFound, "missing")
	jane.post(bindings, `{"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"ok"},"subjects":[{"kind":"User","name":"jane"}]}`).ok()
	jane.post(rbacPath+"clusterroles", `{"metadata":{"name":"x"},"rules":[]}`).fails(403, metav1.StatusReasonForbidden, "cannot create")

	c.post(roles, `{"metadata":{"name":"free"},"rules":[]}`).ok()
	// escalate and bind open exactly the names they say
	bind(c, "special", "jane", `[{"verbs":["escalate"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["free"]},
		{"verbs":["bind"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["special"]}]`)
	eventually(t, func() bool { return jane.patch(roles+"/free", mergePatch, `{"rules":[`+secrets+`]}`).code == 200 })
	jane.patch(roles+"/author", mergePatch, `{"rules":[`+secrets+`]}`).fails(403, metav1.StatusReasonForbidden, lacking)
	jane.post(bindings, `{"metadata":{"name":"c"},"roleRef":{"kind":"Role","name":"special"},"subjects":[{"kind":"User","name":"joe"}]}`).ok()

	// An aggregation rule would bring in whatever is labelled next.
	bind2 := `{"metadata":{"name":"jane"},"roleRef":{"kind":"ClusterRole","name":"writer"},"subjects":[{"kind":"User","name":"jane"}]}`
	c.post(rbacPath+"clusterroles", `{"metadata":{"name":"writer"},"rules":[{"verbs":["create"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"]}]}`).ok()
	c.post(rbacPath+"clusterrolebindings", bind2).ok()
	eventually(t, func() bool {
		return jane.post(rbacPath+"clusterroles", `{"metadata":{"name":"empty"},"rules":[]}`).code == 201
	})
	jane.post(rbacPath+"clusterroles", `{"metadata":{"name":"sum"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`).
		fails(403, metav1.StatusReasonForbidden, "must have cluster-admin privileges to use the aggregationRule")
}

// The default roles are there from the start, and come back; what somebody has added to them stays.
func TestDefaultRoles(t *testing.T) {
	cluster, c := start(t)
	require.Equal(t, 200, c.get(rbacPath+"clusterroles/system:node").code)
	c.get(rbacPath + "namespaces/kube-public/rolebindings/system:controller:bootstrap-signer").ok()
	c.patch(rbacPath+"clusterroles/system:discovery", mergePatch, `{"rules":[{"verbs":["get"],"nonResourceURLs":["/mine"]}]}`).ok()
	jane := personOf(t, cluster, "jane")
	eventually(t, func() bool { return jane.get("/api").code == 403 })
	cluster.Restart()
	c = clientFor(t, cluster.REST("admin"))
	rules := string(c.get(rbacPath + "clusterroles/system:discovery").ok().body)
	require.Contains(t, rules, `"/mine"`)
	require.Contains(t, rules, `"/openapi/*"`)
}

// decoded reads an answer into a typed object.
func decoded[T any](a answer) (out T) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal(a.body, &out))
	return out
}
