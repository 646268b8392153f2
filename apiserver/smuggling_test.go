package apiserver_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// raw sends bytes over TLS as they are, which net/http's client would put in order, and returns the status of the answer and its body. The
// server may hang up instead: that is status 0.
func raw(t *testing.T, cluster *testcluster.Cluster, certificate *tls.Certificate, text string) (int, string) {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cluster.PKI.CA()))
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	at, err := url.Parse(cluster.REST(pki.Admin).Host)
	require.NoError(t, err)
	conn, err := tls.Dial("tcp", at.Host, config)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(frameTimeout)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// request is an HTTP/1.1 request of these lines of header.
func request(line string, header ...string) string {
	return line + " HTTP/1.1\r\nHost: kontiki\r\nConnection: close\r\n" + strings.Join(append(header, ""), "\r\n") + "\r\n"
}

// pairOf is what a client config shows in the handshake.
func pairOf(t *testing.T, config *rest.Config) *tls.Certificate {
	t.Helper()
	secured, err := rest.TLSConfigFor(config)
	require.NoError(t, err)
	if len(secured.Certificates) > 0 {
		return &secured.Certificates[0]
	}
	pair, err := secured.GetClientCertificate(&tls.CertificateRequestInfo{})
	require.NoError(t, err)
	return pair
}

// reader is a person who may read config maps in the namespace default, and nothing else.
func reader(t *testing.T, cluster *testcluster.Cluster, c *client) (*client, *tls.Certificate) {
	t.Helper()
	bind(c, "reader", "jane", `[{"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]}]`)
	config := personConfig(t, cluster, "jane")
	jane := clientFor(t, config)
	eventually(t, func() bool { return jane.get(maps).code == 200 })
	return jane, pairOf(t, config)
}

// Tricks with paths do not get anybody more than the plain path would: what is authorized is what is served.
func TestPathTricks(t *testing.T) {
	cluster, c := start(t)
	c.post("/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"},"stringData":{"k":"planted-value"}}`).ok()
	c.post("/api/v1/namespaces/kube-system/configmaps", `{"metadata":{"name":"other"},"data":{"k":"planted-value"}}`).ok()
	_, jane := reader(t, cluster, c)
	const secret = "/api/v1/namespaces/default/secrets/s"
	for _, path := range []string{
		secret, secret + "/", "//api/v1/namespaces/default/secrets/s", "/api//v1/namespaces/default/secrets/s", "/api/v1/namespaces/default//secrets/s",
		"/api/v1/namespaces/default/configmaps/../secrets/s", "/api/v1/namespaces/default/configmaps/%2e%2e/secrets/s",
		"/api/v1/namespaces/default/configmaps/..%2fsecrets%2fs", "/api/v1/namespaces/default%2fsecrets%2fs", "/api/v1/namespaces/default/secrets%2Fs",
		"/livez/../api/v1/namespaces/default/secrets/s", "/livez/%2e%2e/api/v1/namespaces/default/secrets/s", "/version/..%2f..%2fapi/v1/secrets",
		secret + ";x=/livez", "/livez;/../api/v1/secrets", secret + "?/livez", secret + "#/livez", secret + "%00", secret + "%0a",
		"/API/v1/namespaces/default/secrets/s", "/api/V1/namespaces/default/secrets/s", "/api/v1/namespaces/default/SECRETS/s",
		"/api/v1/watch/namespaces/default/secrets/s", "/api/v1/proxy/namespaces/default/secrets/s", "/api/v1/watch/secrets",
		"/api/v1/namespaces/default/configmaps/../../kube-system/configmaps/other", "/api/v1/namespaces/kube-system/configmaps/other",
		"/api/v1/namespaces/default/configmaps?fieldSelector=metadata.namespace%3Dkube-system", "/api/v1/configmaps?namespace=default",
		"/api/v1/namespaces/default/configmaps/other?namespace=kube-system",
		"http://localhost/api/v1/namespaces/default/secrets/s", "https://127.0.0.1/livez/../api/v1/secrets",
	} {
		for _, host := range []string{"kontiki", "KONTIKI", "127.0.0.1", "[::1]:1"} {
			code, body := raw(t, cluster, jane, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			require.NotContains(t, body, "planted-value", "%s", path)
			require.Contains(t, []int{0, 200, 400, 403, 404}, code, "%s: %s", path, body)
			if code == 200 {
				require.NotContains(t, body, `"Secret`, "%s: %s", path, body)
			}
			anonymous, body := raw(t, cluster, nil, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			want := []int{0, 400, 401}
			if strings.Contains(path, "/livez/") || strings.HasPrefix(path, "/version/") {
				want = append(want, 404) // what is below them is public, and dots lead nowhere
			}
			require.Contains(t, want, anonymous, "%s: %s", path, body)
		}
	}
}

// Headers that claim who somebody is count from nobody but the front proxy, however they are written.
func TestHeaderSmuggling(t *testing.T) {
	cluster, c := start(t)
	_, jane := reader(t, cluster, c)
	const secrets = "GET /api/v1/secrets"
	claims := []string{
		"X-Remote-User: root\r\nX-Remote-Group: system:masters", "x-remote-user: root\r\nx-remote-group: system:masters",
		"X_Remote_User: root\r\nX_Remote_Group: system:masters", "X-Remote-User : root\r\nX-Remote-Group : system:masters",
		"X-Remote-User:\r\n root\r\nX-Remote-Group:\r\n system:masters", " X-Remote-User: root\r\n X-Remote-Group: system:masters",
		"Connection: X-Remote-User\r\nX-Remote-User: root\r\nX-Remote-Group: system:masters", "X-Remote-User\x00: root\r\nX-Remote-Group: system:masters",
		"X-Forwarded-User: root", "X-Remote-Extra-Scopes: all\r\nX-Remote-Uid: 0\r\nX-Remote-User: root\r\nX-Remote-Group: system:masters",
		"X-Original-URL: /livez", "X-Rewrite-URL: /livez", "X-HTTP-Method-Override: GET", "Forwarded: for=127.0.0.1",
	}
	for _, claim := range claims {
		code, body := raw(t, cluster, jane, request(secrets, claim))
		require.Contains(t, []int{0, 400, 403}, code, "%q: %s", claim, body)
		if code == 403 {
			require.Contains(t, body, `User \"jane\" cannot list resource \"secrets\"`, "%q", claim)
		}
		code, body = raw(t, cluster, nil, request(secrets, claim))
		require.Contains(t, []int{0, 400, 401}, code, "%q: %s", claim, body)
	}
	for _, claim := range []string{
		"Impersonate-User: kubernetes-admin\r\nImpersonate-Group: system:masters", "impersonate-user: root\r\nimpersonate-group: system:masters",
		"Impersonate-User: jane\r\nImpersonate-Group: system:masters", "Impersonate-User: system:node:n1\r\nImpersonate-Group: system:nodes",
		"Impersonate-User: jane", "Impersonate-Uid: 0\r\nImpersonate-User: jane", "Impersonate-User: system:serviceaccount:kube-system:default",
	} {
		code, body := raw(t, cluster, jane, request(secrets, claim))
		require.Equal(t, 403, code, "%q: %s", claim, body)
		require.Contains(t, body, "cannot impersonate resource", "%q", claim)
	}
	for _, claim := range []string{"Impersonate_User: root\r\nImpersonate_Group: system:masters", "Impersonate-Users: root"} {
		code, body := raw(t, cluster, jane, request(secrets, claim))
		require.Equal(t, 403, code)
		require.Contains(t, body, `User \"jane\" cannot list resource \"secrets\"`, "%q", claim)
	}
	for _, claim := range []string{"Impersonate-Group: system:masters", "Impersonate-Extra-Scopes: all"} {
		code, body := raw(t, cluster, jane, request(secrets, claim))
		require.Equal(t, 400, code, "%q: %s", claim, body)
	}
}

// What is shown as a credential is good or the answer is 401: not another one beside it, nor nobody in particular.
func TestCredentialsThatAreNone(t *testing.T) {
	cluster, c := start(t)
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	token := requestToken(c, "robot", "").Status.Token
	code, _ := raw(t, cluster, nil, request("GET /api", "Authorization: Bearer "+token))
	require.Equal(t, 200, code)
	for _, header := range []string{
		"Authorization: Bearer " + token + "\r\nAuthorization: Bearer x", "Authorization: Bearer x\r\nAuthorization: Bearer " + token,
		"Authorization: Bearer", "Authorization: Bearer ", "Authorization: Basic cm9vdDpyb290", "Authorization: " + token, "Authorization: Bearer x",
		"Authorization: Bearer " + token + "x", "Authorization: Bearer " + token + " x", "Authorization: Bearer " + token[:len(token)-2],
		"Connection: Authorization", "Proxy-Authorization: Bearer " + token, "Cookie: token=" + token, "X-Authorization: Bearer " + token,
	} {
		code, body := raw(t, cluster, nil, request("GET /api", header))
		require.Equal(t, 401, code, "%q: %s", header, body)
		require.NotContains(t, body, token[:20])
		if strings.HasPrefix(header, "Authorization: B") { // also where nobody need be anybody
			code, _ = raw(t, cluster, nil, request("GET /version", header))
			require.Equal(t, 401, code, "%q", header)
		}
	}
	code, _ = raw(t, cluster, nil, request("GET /api?access_token="+token+"&token="+token))
	require.Equal(t, 401, code)
	// A token that is listed as hop-by-hop is still the requester's: there is no hop here.
	code, _ = raw(t, cluster, nil, request("GET /api", "Connection: Authorization", "Authorization: Bearer "+token))
	require.Equal(t, 200, code)
}

// Two readings of where a request ends are none.
func TestRequestSmuggling(t *testing.T) {
	cluster, c := start(t)
	_, jane := reader(t, cluster, c)
	const hidden = "GET /api/v1/secrets HTTP/1.1\r\nHost: kontiki\r\n\r\n"
	for _, header := range []string{
		fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked", len(hidden)), "Content-Length: 3\r\nContent-Length: 4", "Transfer-Encoding: chunked, identity",
		"Transfer-Encoding: xchunked", "Content-Length: +3", "Content-Length: -1",
	} {
		code, body := raw(t, cluster, jane, request("POST /api/v1/namespaces/default/configmaps", header)+"0\r\n\r\n"+hidden)
		require.Contains(t, []int{0, 400, 403, 501}, code, "%q: %s", header, body)
		require.NotContains(t, body, "SecretList")
	}
}

// Subresources and streams are rights of their own; and a stream is authorized before anything is switched or passed on.
func TestStreamsAreRights(t *testing.T) {
	cluster, c := start(t)
	c.post("/api/v1/nodes", `{"metadata":{"name":"n1"}}`).ok()
	c.post(podsPath, `{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`).ok()
	bind(c, "reader", "jane", `[{"verbs":["get","list","watch"],"apiGroups":[""],"resources":["pods","services","configmaps"]}]`)
	config := personConfig(t, cluster, "jane")
	jane, pair := clientFor(t, config), pairOf(t, config)
	eventually(t, func() bool { return jane.get(podsPath).code == 200 })
	upgrade := []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: v5.channel.k8s.io"}
	for path, resource := range map[string]string{
		podsPath + "/p/exec?command=sh&stdin=true": "pods/exec", podsPath + "/p/attach": "pods/attach", podsPath + "/p/portforward?ports=80": "pods/portforward",
		podsPath + "/p/proxy/": "pods/proxy", podsPath + "/https:p:10250/proxy/../../exec": "pods/proxy", podsPath + "/p/log": "pods/log",
		"/api/v1/nodes/n1/proxy/pods": "nodes/proxy", "/api/v1/nodes/https:n1:10250/proxy/exec/default/p/c": "nodes/proxy",
		"/api/v1/nodes/n1/proxy/..%2f..%2f..%2fpods": "nodes/proxy", inDefault + "services/s/proxy/": "services/proxy",
	} {
		for _, header := range [][]string{nil, upgrade} {
			code, body := raw(t, cluster, pair, request("GET "+path, header...))
			require.Equal(t, 403, code, "%s: %s", path, body)
			require.Contains(t, body, `User \"jane\" cannot get resource \"`+resource+`\"`, path)
			code, _ = raw(t, cluster, nil, request("GET "+path, header...))
			require.Equal(t, 401, code, path)
		}
	}
}
