package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Whoever tries to become more than they are is refused, told why, and written down.
func TestEscalationsAreRefusedAndRecorded_RB01(t *testing.T) {
	cluster, c, log := startAudited(t, "rules: [{level: Metadata, omitStages: [RequestReceived, ResponseStarted]}]")
	jane := personOf(t, cluster, "jane")
	n1 := clientFor(t, cluster.NodeREST("n1"))
	c.post("/api/v1/nodes", `{"metadata":{"name":"n2"}}`).ok()
	c.post("/api/v1/namespaces/default/secrets", `{"metadata":{"name":"theirs"}}`).ok()
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	pod := c.post(podsPath, `{"metadata":{"name":"p"},"spec":{"nodeName":"n2","serviceAccountName":"robot","containers":[{"name":"c","image":"i"}],
		"volumes":[{"name":"v","secret":{"secretName":"theirs"}}]}}`).ok().object()
	bound := `"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"` + string(pod.GetUID()) + `"}`
	dead := tokenClient(t, cluster, requestToken(c, "robot", bound).Status.Token)
	require.Equal(t, "system:serviceaccount:default:robot", whoami(dead).Username)
	c.delete(podsPath+"/p?gracePeriodSeconds=0", "").ok()
	c.post(podsPath, `{"metadata":{"name":"p"},"spec":{"nodeName":"n2","serviceAccountName":"robot","containers":[{"name":"c","image":"i"}]}}`).ok()
	bind(c, "author", "jane", `[{"verbs":["create","update","patch"],"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"]}]`)
	const roles, bindings = rbacPath + "namespaces/default/roles", rbacPath + "namespaces/default/rolebindings"
	eventually(t, func() bool { return jane.post(roles, `{"metadata":{"name":"empty"}}`).code != 403 })
	eventually(t, func() bool { return dead.get("/api").code == 401 })

	const everything = `{"metadata":{"name":"more"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]}`
	for name, attempt := range map[string]struct {
		who                *client
		method, path, body string
		headers            []string
		code               int
		reason             string // in the answer
		decision           string // of the authorizer, in the record
	}{
		"escalate":            {jane, "POST", roles, everything, nil, 403, `is attempting to grant RBAC permissions not currently held`, "allow"},
		"bind":                {jane, "POST", bindings, `{"metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"jane"}]}`, nil, 403, "not currently held", "allow"},
		"impersonate":         {jane, "GET", "/api", "", []string{"Impersonate-User", "root", "Impersonate-Group", "system:masters"}, 403, `User "jane" cannot impersonate resource`, ""},
		"another's secret":    {n1, "GET", "/api/v1/namespaces/default/secrets/theirs", "", nil, 403, "no relationship found between node 'n1' and this object", "forbid"},
		"another's token":     {n1, "POST", accounts + "/robot/token", `{"spec":{` + bound + `}}`, nil, 403, "no relationship found", "forbid"},
		"a dead pod's token":  {dead, "GET", "/api/v1/namespaces/default/secrets/theirs", "", nil, 401, "Unauthorized", ""},
		"a node's agent":      {n1, "GET", "/api/v1/nodes/n2/proxy/pods", "", nil, 403, `cannot get resource "nodes/proxy"`, "forbid"},
		"a stronger role":     {jane, "PATCH", rbacPath + "clusterroles/view", `{"rules":[]}`, []string{"Content-Type", mergePatch}, 403, "cannot patch resource", "forbid"},
		"a token for another": {jane, "POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", `{"spec":{}}`, nil, 403, `cannot create resource "serviceaccounts/token"`, "forbid"},
		"a certificate":       {jane, "POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", `{}`, nil, 403, "cannot create resource", "forbid"},
	} {
		answer := attempt.who.do(attempt.method, attempt.path, attempt.body, attempt.headers...)
		reason := metav1.StatusReasonForbidden
		if attempt.code == 401 {
			reason = metav1.StatusReasonUnauthorized
		}
		answer.fails(attempt.code, reason, attempt.reason)
		event := log.last(answer.header.Get("Audit-Id"), 1)
		require.Equal(t, auditv1.StageResponseComplete, event.Stage, name)
		require.Equal(t, int32(attempt.code), event.ResponseStatus.Code, name)
		require.Equal(t, attempt.decision, event.Annotations["authorization.k8s.io/decision"], name)
		if attempt.code == 403 {
			require.NotEmpty(t, event.User.Username, name)
			require.Contains(t, event.ResponseStatus.Message, attempt.reason, name)
		}
	}
}
