package apiserver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

const accounts = "/api/v1/namespaces/default/serviceaccounts"

// tokenClient shows a token and no certificate.
func tokenClient(t *testing.T, cluster *testcluster.Cluster, token string) *client {
	t.Helper()
	config := rest.AnonymousClientConfig(cluster.REST(pki.Admin))
	config.BearerToken = token
	return clientFor(t, config)
}

func requestToken(c *client, account, spec string) authenticationv1.TokenRequest {
	c.t.Helper()
	return decoded[authenticationv1.TokenRequest](c.post(accounts+"/"+account+"/token", `{"spec":{`+spec+`}}`).ok())
}

func whoami(c *client, headers ...string) authenticationv1.UserInfo {
	c.t.Helper()
	answer := c.do("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", headers...).ok()
	return decoded[authenticationv1.SelfSubjectReview](answer).Status.UserInfo
}

func TestServiceAccountTokens(t *testing.T) {
	cluster, c := start(t)
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	issued := requestToken(c, "robot", "")
	require.Equal(t, int64(3600), *issued.Spec.ExpirationSeconds)
	require.Equal(t, []string{"https://kubernetes.default.svc.cluster.local"}, issued.Spec.Audiences)
	robot := tokenClient(t, cluster, issued.Status.Token)
	who := whoami(robot)
	require.Equal(t, "system:serviceaccount:default:robot", who.Username)
	require.Equal(t, []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}, who.Groups)
	require.Contains(t, who.Extra["authentication.kubernetes.io/credential-id"][0], "JTI=")
	robot.get(maps).fails(403, metav1.StatusReasonForbidden, `User "system:serviceaccount:default:robot" cannot list resource "configmaps"`)
	c.post(rbacPath+"namespaces/default/rolebindings", `{"metadata":{"name":"robot"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"kind":"ServiceAccount","name":"robot","namespace":"default"}]}`).ok()
	eventually(t, func() bool { return robot.get(maps).code == 200 })

	// Good for the audiences it names, and no others.
	vault := requestToken(c, "robot", `"audiences":["vault"]`).Status.Token
	tokenClient(t, cluster, vault).get(maps).fails(401, metav1.StatusReasonUnauthorized, "Unauthorized")
	review := func(token, audiences string) authenticationv1.TokenReviewStatus {
		return decoded[authenticationv1.TokenReview](c.post("/apis/authentication.k8s.io/v1/tokenreviews", fmt.Sprintf(`{"spec":{"token":%q,"audiences":[%s]}}`, token, audiences)).ok()).Status
	}
	got := review(vault, `"vault","other"`)
	require.True(t, got.Authenticated)
	require.Equal(t, []string{"vault"}, got.Audiences)
	require.Equal(t, "system:serviceaccount:default:robot", got.User.Username)
	got = review(vault, `"other"`)
	require.False(t, got.Authenticated)
	require.Contains(t, got.Error, "audience")
	require.False(t, review("nonsense", "").Authenticated)

	c.post(accounts+"/robot/token", `{"spec":{"expirationSeconds":60}}`).fails(422, metav1.StatusReasonInvalid, "10 minutes")
	c.post(accounts+"/nobody/token", `{"spec":{}}`).fails(404, metav1.StatusReasonNotFound, "nobody")
	c.post(accounts+"/robot/token", `{"spec":{"boundObjectRef":{"kind":"ConfigMap","apiVersion":"v1","name":"x"}}}`).fails(400, metav1.StatusReasonBadRequest, "cannot bind")

	// It ends with the account, also if another of the same name follows.
	c.delete(accounts+"/robot", "").ok()
	robot.get(maps).fails(401, metav1.StatusReasonUnauthorized, "")
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	robot.get(maps).fails(401, metav1.StatusReasonUnauthorized, "")
}

func TestTokenOfAPod(t *testing.T) {
	cluster, c := start(t)
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	c.post(accounts, `{"metadata":{"name":"other"}}`).ok()
	const pods = "/api/v1/namespaces/default/pods"
	pod := c.post(pods, `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"robot","containers":[{"name":"c","image":"i"}]}}`).ok().object()
	bound := func(uid string) string {
		return `"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"` + uid + `"}`
	}
	robot := tokenClient(t, cluster, requestToken(c, "robot", bound(string(pod.GetUID()))).Status.Token)
	require.Equal(t, authenticationv1.ExtraValue{"p"}, whoami(robot).Extra["authentication.kubernetes.io/pod-name"])
	require.Equal(t, authenticationv1.ExtraValue{string(pod.GetUID())}, whoami(robot).Extra["authentication.kubernetes.io/pod-uid"])
	c.post(accounts+"/other/token", `{"spec":{`+bound("")+`}}`).fails(400, metav1.StatusReasonBadRequest, "different serviceaccount")
	c.post(accounts+"/robot/token", `{"spec":{`+bound("another")+`}}`).fails(409, metav1.StatusReasonConflict, "UID")
	c.delete(pods+"/p?gracePeriodSeconds=0", "").ok()
	robot.get("/api").fails(401, metav1.StatusReasonUnauthorized, "")
}

// Anybody may fetch what it takes to check tokens.
func TestOpenIDDiscovery(t *testing.T) {
	cluster, c := start(t)
	nobody := clientFor(t, rest.AnonymousClientConfig(cluster.REST(pki.Admin)))
	document := nobody.get("/.well-known/openid-configuration").ok()
	require.Equal(t, "application/json", document.header.Get("Content-Type"))
	require.Contains(t, string(document.body), `"issuer":"https://kubernetes.default.svc.cluster.local"`)
	require.Contains(t, string(nobody.get("/openid/v1/jwks").ok().body), `"kty":"EC"`)
	_ = c
}

func TestImpersonation(t *testing.T) {
	cluster, c := start(t)
	who := whoami(c, "Impersonate-User", "jane", "Impersonate-Group", "dev", "Impersonate-Uid", "7", "Impersonate-Extra-Scopes", "view")
	require.Equal(t, authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"dev", "system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{"scopes": {"view"}}}, who)
	require.Equal(t, []string{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"}, whoami(c, "Impersonate-User", "system:serviceaccount:a:robot").Groups)
	c.get(maps, "Impersonate-User", "jane").fails(403, metav1.StatusReasonForbidden, `User "jane" cannot list`)
	c.get(maps, "Impersonate-Group", "dev").fails(400, metav1.StatusReasonBadRequest, "without impersonating a user")

	// Others only what they are allowed to be, each part of it.
	jane := personOf(t, cluster, "jane")
	jane.get(maps, "Impersonate-User", "joe").fails(403, metav1.StatusReasonForbidden, `users "joe" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope`)
	c.post(rbacPath+"clusterroles", `{"metadata":{"name":"be-joe"},"rules":[{"verbs":["impersonate"],"apiGroups":[""],"resources":["users"],"resourceNames":["joe"]}]}`).ok()
	c.post(rbacPath+"clusterrolebindings", `{"metadata":{"name":"be-joe"},"roleRef":{"kind":"ClusterRole","name":"be-joe"},"subjects":[{"kind":"User","name":"jane"}]}`).ok()
	eventually(t, func() bool { return jane.get("/api", "Impersonate-User", "joe").code == 200 })
	jane.get("/api", "Impersonate-User", "joe", "Impersonate-Group", "system:masters").fails(403, metav1.StatusReasonForbidden, `groups "system:masters" is forbidden`)
	jane.get("/api", "Impersonate-User", "jill").fails(403, metav1.StatusReasonForbidden, `users "jill" is forbidden`)
	jane.get("/api", "Impersonate-User", "system:serviceaccount:default:x").fails(403, metav1.StatusReasonForbidden, `serviceaccounts "x" is forbidden`)
	jane.get("/api", "Impersonate-User", "joe", "Impersonate-Extra-Scopes", "all").fails(403, metav1.StatusReasonForbidden, `userextras/scopes`)
}
