package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kontiki/apiserver"
	"kontiki/apiserver/authconfig"
	"kontiki/apiserver/authwebhook"
	"kontiki/internal/controlplane"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

func startWith(t *testing.T, access apiserver.AccessConfig) (*testcluster.Cluster, *client) {
	t.Helper()
	cluster := testcluster.StartWith(t, func(c *controlplane.Config) { c.Access = access })
	return cluster, clientFor(t, cluster.REST(pki.Admin))
}

// The front proxy is believed by its certificate, and that certificate is nobody itself.
func TestFrontProxy(t *testing.T) {
	cluster, c := start(t)
	proxyOf := func(name string) *client {
		config := cluster.REST(pki.Admin)
		config.CertData, config.KeyData = issue(t, cluster.Dir+"/pki/front-proxy-ca.crt", cluster.Dir+"/pki/front-proxy-ca.key",
			pkix.Name{CommonName: name, Organization: []string{"system:masters"}})
		return clientFor(t, config)
	}
	proxy := proxyOf("front-proxy-client")
	who := whoami(proxy, "X-Remote-User", "jane", "X-Remote-Group", "dev", "X-Remote-Extra-Acme.org%2fteam", "a")
	require.Equal(t, authenticationv1.UserInfo{Username: "jane", Groups: []string{"dev", "system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{"acme.org/team": {"a"}}}, who)
	proxy.get(maps, "X-Remote-User", "jane").fails(403, metav1.StatusReasonForbidden, `User "jane" cannot list`)
	proxy.get(maps).fails(401, metav1.StatusReasonUnauthorized, "") // system:masters of another authority
	other := proxyOf("kubernetes-admin")
	other.get(maps, "X-Remote-User", "jane").fails(401, metav1.StatusReasonUnauthorized, "")
	other.get(maps).fails(401, metav1.StatusReasonUnauthorized, "")
	require.Equal(t, "kubernetes-admin", whoami(c, "X-Remote-User", "jane", "X-Remote-Group", "dev").Username)
}

// A browser's token, in a subprotocol of the WebSocket.
func TestTokenInASubprotocol(t *testing.T) {
	cluster, c := start(t)
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	c.post(rbacPath+"namespaces/default/rolebindings", `{"metadata":{"name":"robot"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"kind":"ServiceAccount","name":"robot","namespace":"default"}]}`).ok()
	token := requestToken(c, "robot", "").Status.Token
	robot := tokenClient(t, cluster, token)
	eventually(t, func() bool { return robot.get(maps).code == 200 })
	config := rest.AnonymousClientConfig(cluster.REST(pki.Admin))
	encoded := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
	c.post(maps, configMap("seen", "")).ok()
	socket := dial(t, config, maps+"?watch=1", nil, encoded, "binary.k8s.io")
	require.Equal(t, "binary.k8s.io", socket.Subprotocol())
	_, message, err := socket.ReadMessage()
	require.NoError(t, err)
	require.Contains(t, string(message), `"seen"`, "who has the token watches")
	upgrade := func(protocols string) string {
		return request("GET "+maps+"?watch=1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: "+protocols)
	}
	for _, protocols := range []string{encoded, encoded + ", " + encoded + ", binary.k8s.io", "base64url.bearer.authorization.k8s.io.!!, binary.k8s.io",
		"base64url.bearer.authorization.k8s.io.eA, binary.k8s.io", "base64url.bearer.authorization.k8s.io., binary.k8s.io"} {
		code, body := raw(t, cluster, nil, upgrade(protocols))
		require.Equal(t, 401, code, "%s: %s", protocols, body)
	}
	code, _ := raw(t, cluster, nil, request("GET "+maps, "Sec-WebSocket-Protocol: "+encoded+", x")) // no WebSocket
	require.Equal(t, 401, code)
}

// Tokens of an issuer that the configuration file names, from the file to whoami.
func TestTokensOfAnIssuer(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	point, err := key.PublicKey.Bytes()
	require.NoError(t, err)
	b64 := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	issuer := httptest.NewTLSServer(mux)
	t.Cleanup(issuer.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, issuer.URL, issuer.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","kid":"1","x":%q,"y":%q}]}`, b64(point[1:33]), b64(point[33:]))
	})
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	ca, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw})))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
jwt:
- issuer: {url: %q, audiences: [kontiki], certificateAuthority: %s}
  claimMappings:
    username: {expression: "'oidc:' + claims.sub"}
    groups: {claim: groups, prefix: "oidc:"}
  userValidationRules: [{expression: "!user.username.startsWith('system:')", message: reserved}]
`, issuer.URL, ca)), 0o600))
	access := apiserver.AccessConfig{Files: authconfig.Files{Authentication: file, OwnIssuer: apiserver.DefaultTokenIssuer}, FollowEvery: 10 * time.Millisecond}
	require.NoError(t, access.Files.Authenticate(&access.Rules))
	cluster, c := startWith(t, access)
	sign := func(audience string) string {
		token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": issuer.URL, "aud": audience, "sub": "jane", "groups": []string{"dev"}, "exp": time.Now().Add(time.Hour).Unix()})
		token.Header["kid"] = "1"
		signed, err := token.SignedString(key)
		require.NoError(t, err)
		return signed
	}
	who := whoami(tokenClient(t, cluster, sign("kontiki")))
	require.Equal(t, "oidc:jane", who.Username)
	require.Equal(t, []string{"oidc:dev", "system:authenticated"}, who.Groups)
	tokenClient(t, cluster, sign("other")).get("/api").fails(401, metav1.StatusReasonUnauthorized, "")
	review := decoded[authenticationv1.TokenReview](c.post("/apis/authentication.k8s.io/v1/tokenreviews", fmt.Sprintf(`{"spec":{"token":%q}}`, sign("kontiki"))).ok())
	require.True(t, review.Status.Authenticated)
	require.Equal(t, []string{apiserver.DefaultTokenIssuer}, review.Status.Audiences)

	nobody := clientFor(t, rest.AnonymousClientConfig(cluster.REST(pki.Admin)))
	nobody.get("/livez").header.Get("x")
	require.Equal(t, 200, nobody.get("/livez").code)
	require.Equal(t, 401, nobody.get("/version").code) // the configuration opens /livez alone

	replaceFile(t, file, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: 'http://x'}, nonsense: 1}]")
	require.ErrorContains(t, access.Files.Authenticate(&access.Rules), `unknown field "jwt[0].nonsense"`)

	const reloads = `apiserver_authentication_config_controller_automatic_reloads_total`
	eventually(t, func() bool {
		return strings.Contains(string(c.get("/metrics").ok().body), reloads+`{status="failure"} 1`)
	})
	require.Equal(t, "oidc:jane", whoami(tokenClient(t, cluster, sign("kontiki"))).Username, "a faulty file changes nothing")
	replaceFile(t, file, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true, conditions: [{path: /version}]}")
	eventually(t, func() bool { return nobody.get("/version").code == 200 })
	require.Equal(t, 401, nobody.get("/livez").code)
	tokenClient(t, cluster, sign("kontiki")).get("/api").fails(401, metav1.StatusReasonUnauthorized, "") // the issuer is gone
}

// replaceFile puts another file in the place of one, at once.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// authHook is a real webhook server, whose answer tests choose.
type authHook struct {
	*httptest.Server
	kubeconfig string

	mu     sync.Mutex // guards what follows
	answer func(w http.ResponseWriter, review map[string]any)
	asked  int
}

func newAuthHook(t *testing.T) *authHook {
	t.Helper()
	h := &authHook{kubeconfig: filepath.Join(t.TempDir(), "hook.kubeconfig")}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if json.NewDecoder(r.Body).Decode(&review) != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		h.asked++
		answer := h.answer
		h.mu.Unlock()
		answer(w, review)
	}))
	t.Cleanup(h.Close)
	h.writeKubeconfig(t, h.Certificate().Raw)
	return h
}

func (h *authHook) writeKubeconfig(t *testing.T, authority []byte) {
	t.Helper()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}))
	require.NoError(t, os.WriteFile(h.kubeconfig, []byte(fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: hook, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: kontiki, user: {}}]
contexts: [{name: hook, context: {cluster: hook, user: kontiki}}]
current-context: hook
`, h.URL+"/review", ca)), 0o600))
}

func (h *authHook) answers(f func(w http.ResponseWriter, review map[string]any)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.asked = f, 0
}

// withStatus answers a review with a status.
func withStatus(status map[string]any) func(http.ResponseWriter, map[string]any) {
	return func(w http.ResponseWriter, review map[string]any) {
		review["status"] = status
		_ = json.NewEncoder(w).Encode(review)
	}
}

func TestTokenWebhook(t *testing.T) {
	h := newAuthHook(t)
	cluster, c := startWith(t, apiserver.AccessConfig{TokenWebhook: authwebhook.TokenConfig{Kubeconfig: h.kubeconfig, Timeout: time.Second}})
	h.answers(func(w http.ResponseWriter, review map[string]any) {
		status := map[string]any{"authenticated": false}
		if spec := review["spec"].(map[string]any); spec["token"] == "opaque" {
			status = map[string]any{"authenticated": true, "user": map[string]any{"username": "jane", "uid": "7", "groups": []string{"dev"}, "extra": map[string]any{"a": []string{"b"}}}}
		}
		withStatus(status)(w, review)
	})
	require.Equal(t, authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"dev", "system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{"a": {"b"}}}, whoami(tokenClient(t, cluster, "opaque")))
	for range 3 {
		whoami(tokenClient(t, cluster, "opaque"))
	}
	require.Equal(t, 1, h.asked, "answers are kept")
	tokenClient(t, cluster, "other").get("/api").fails(401, metav1.StatusReasonUnauthorized, "")
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	whoami(tokenClient(t, cluster, requestToken(c, "robot", "").Status.Token))
	require.Equal(t, 2, h.asked, "who is known here is not asked about")

	for name, f := range map[string]func(http.ResponseWriter, map[string]any){
		"broken": func(w http.ResponseWriter, _ map[string]any) { fmt.Fprint(w, "{") },
		"another": func(w http.ResponseWriter, _ map[string]any) {
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","status":{"authenticated":true,"user":{"username":"root"}}}`)
		},
		"no name":    withStatus(map[string]any{"authenticated": true}),
		"overloaded": func(w http.ResponseWriter, _ map[string]any) { w.WriteHeader(503) },
		"elsewhere":  withStatus(map[string]any{"authenticated": true, "audiences": []string{"vault"}, "user": map[string]any{"username": "jane"}}),
	} {
		h.answers(f)
		tokenClient(t, cluster, "token-"+name[:2]).get("/api").fails(401, metav1.StatusReasonUnauthorized, "")
	}
	h.Close()
	tokenClient(t, cluster, "down").get("/api").fails(401, metav1.StatusReasonUnauthorized, "")
}

// The chain of authorizers of a configuration file: a webhook before Node and RBAC, under both failure policies.
func TestAuthorizationWebhook(t *testing.T) {
	for _, policy := range []string{"Deny", "NoOpinion"} {
		t.Run(policy, func(t *testing.T) {
			h := newAuthHook(t)
			file := filepath.Join(t.TempDir(), "authorization.yaml")
			require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: judge
  webhook:
    timeout: 1s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: "!('system:nodes' in request.groups)"
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`, policy, h.kubeconfig)), 0o600))
			access := apiserver.AccessConfig{Files: authconfig.Files{Authorization: file}, FollowEvery: 10 * time.Millisecond}
			require.NoError(t, access.Files.Authorize(&access.Rules))
			var seen authorizationv1.SubjectAccessReviewSpec
			h.answers(func(w http.ResponseWriter, review map[string]any) {
				data, _ := json.Marshal(review["spec"])
				var spec authorizationv1.SubjectAccessReviewSpec
				_ = json.Unmarshal(data, &spec)
				h.mu.Lock()
				seen = spec
				h.mu.Unlock()
				status := map[string]any{"allowed": spec.User == "jane", "denied": spec.User == "joe", "reason": "as the judge says"}
				withStatus(status)(w, review)
			})
			cluster, c := startWith(t, access)
			c.post(rbacPath+"clusterrolebindings", `{"metadata":{"name":"all"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"joe"},{"kind":"User","name":"jill"}]}`).ok()
			as := func(name string) []string { return []string{"Impersonate-User", name, "Impersonate-Extra-Team", "a"} }
			eventually(t, func() bool { return c.get("/metrics", as("jill")...).code == 200 })
			c.get(maps+"?labelSelector=app%3Dx&fieldSelector=metadata.name%3Dy", as("jane")...).ok()
			h.mu.Lock()
			require.Equal(t, "jane", seen.User)
			require.Equal(t, []string{"system:authenticated"}, seen.Groups)
			require.Equal(t, authorizationv1.ExtraValue{"a"}, seen.Extra["team"])
			require.Equal(t, &authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "configmaps", Namespace: "default", Name: "y",
				FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"y"}}}},
				LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "In", Values: []string{"x"}}}},
			}, seen.ResourceAttributes)
			h.mu.Unlock()
			c.get(maps, as("joe")...).fails(403, metav1.StatusReasonForbidden, "as the judge says") // whatever the roles say
			c.get(maps, as("jill")...).ok()                                                         // no opinion, then RBAC
			review := c.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"spec":{"user":"joe","resourceAttributes":{"verb":"list","resource":"pods"}}}`).ok()
			require.Equal(t, map[string]any{"allowed": false, "denied": true, "reason": "as the judge says"}, review.object().Object["status"])
			c.get(maps).ok() // system:masters is not for others to judge

			h.answers(func(w http.ResponseWriter, _ map[string]any) { fmt.Fprint(w, "nonsense") })
			node := clientFor(t, cluster.NodeREST("n1"))
			require.Equal(t, 404, node.get("/api/v1/nodes/n1").code) // does not match
			answer := c.get("/api/v1/secrets", as("jill")...)
			other := c.get("/api/v1/secrets", as("jane")...)
			if policy == "Deny" {
				answer.fails(403, metav1.StatusReasonForbidden, `authorizer "judge" failed`)
				other.fails(403, metav1.StatusReasonForbidden, `authorizer "judge" failed`)
			} else {
				answer.ok()
				other.fails(403, metav1.StatusReasonForbidden, `User "jane" cannot list`)
			}
			h.Close()
			require.Equal(t, policy == "NoOpinion", c.get("/api/v1/services", as("jill")...).code == 200)
			c.get("/api/v1/services").ok()

			replaceFile(t, file, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC, name: rbac}]")
			eventually(t, func() bool { return c.get("/api/v1/services", as("joe")...).code == 200 }) // nobody judges but the roles
			require.Equal(t, 403, node.get("/api/v1/nodes/n1").code)
		})
	}
}

// Selectors are a part of what is asked: in reviews, and in names of roles.
func TestSelectorsCount(t *testing.T) {
	cluster, c := start(t)
	jane := personOf(t, cluster, "jane")
	bind(c, "one", "jane", `[{"verbs":["list","watch"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["mine"]}]`)
	eventually(t, func() bool { return jane.get(maps+"?fieldSelector=metadata.name%3Dmine").code == 200 })
	jane.get(maps).fails(403, metav1.StatusReasonForbidden, "cannot list")
	for _, selector := range []string{"metadata.name%3Dyours", "metadata.name!%3Dmine", "metadata.namespace%3Ddefault", "metadata.name%3D", "x"} {
		jane.get(maps+"?fieldSelector="+selector).fails(403, metav1.StatusReasonForbidden, "cannot list")
	}
	jane.get(maps+"?fieldSelector=metadata.namespace%3Ddefault&fieldSelector=metadata.name%3Dmine").fails(403, metav1.StatusReasonForbidden, "cannot list")
	review := func(attributes string) authorizationv1.SubjectAccessReviewStatus {
		return decoded[authorizationv1.SubjectAccessReview](c.post("/apis/authorization.k8s.io/v1/subjectaccessreviews",
			`{"spec":{"user":"system:node:n1","groups":["system:nodes"],"resourceAttributes":{"verb":"list","resource":"pods",`+attributes+`}}}`).ok()).Status
	}
	require.True(t, review(`"fieldSelector":{"rawSelector":"spec.nodeName=n1"}`).Allowed)
	require.True(t, review(`"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["n1"]}]}`).Allowed)
	require.False(t, review(`"fieldSelector":{"rawSelector":"spec.nodeName=n2"}`).Allowed)
	require.False(t, review(`"labelSelector":{"rawSelector":"a=b"}`).Allowed)
	got := review(`"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["n1"]},{"key":"a","operator":"Exists"}]}`)
	require.True(t, got.Allowed)
	require.Equal(t, "spec.resourceAttributes.fieldSelector partially ignored due to parse error", got.EvaluationError)
}
