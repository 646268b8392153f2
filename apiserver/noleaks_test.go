package apiserver_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/audit"
	"kontiki/internal/controlplane"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// safeBuffer is a log in memory.
type safeBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// leaks sends requests with secrets in them and keeps what the server says of the refused ones.
type leaks struct {
	*client
	planted []string // as they were sent, and in base64
	errors  strings.Builder
	n       int
}

// secret returns a new secret that nobody may write down.
func (l *leaks) secret() string {
	l.n++
	value := fmt.Sprintf("hush%04dhush", l.n)
	l.planted = append(l.planted, value, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="))
	return value
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// send sends a request and requires an answer of a kind: "ok", or "refused".
func (l *leaks) send(want, method, path, contentType, body string, headers ...string) answer {
	l.t.Helper()
	a := l.do(method, path, body, append([]string{"Content-Type", contentType}, headers...)...)
	if want == "ok" {
		return a.ok()
	}
	require.GreaterOrEqual(l.t, a.code, 400, string(a.body))
	fmt.Fprintf(&l.errors, "%s %s: %s\n", method, path, a.body)
	return a
}

// TestNoSecretIsWrittenDown plants secrets in everything that is sent to a server, good requests and bad ones, and then looks for
// them in its log, at level debug, in the audit log, at level Metadata, in events, and in the errors it has answered with.
func TestNoSecretIsWrittenDown(t *testing.T) {
	log, path := &safeBuffer{}, filepath.Join(t.TempDir(), "audit.log")
	everything, err := audit.ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"))
	require.NoError(t, err)
	cluster := testcluster.StartWith(t, func(c *controlplane.Config) {
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Audit = audit.Config{Policy: everything, File: &audit.FileConfig{Path: path, Mode: audit.ModeBlocking}}
	})
	l := &leaks{client: clientFor(t, cluster.REST(pki.Admin))}
	l.plantInObjects()
	l.plantInPatches()
	l.plantInCredentials(cluster)
	l.plantInURLs()

	events := string(l.get("/api/v1/events").ok().body)
	require.NoError(t, os.WriteFile(filepath.Join(t.TempDir(), "x"), nil, 0o600))
	audited, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Greater(t, bytes.Count(audited, []byte("\n")), 60, "the requests are in it")
	require.NotEmpty(t, log.String())
	for place, text := range map[string]string{"log": log.String(), "audit": string(audited), "events": events, "errors": l.errors.String()} {
		for _, planted := range l.planted {
			if i := strings.Index(text, planted); i >= 0 {
				t.Errorf("%s has %q: …%s…", place, planted, text[max(0, i-300):min(len(text), i+100)])
			}
		}
	}
}

const jsonType, yamlType = "application/json", "application/yaml"

func (l *leaks) plantInObjects() {
	secrets, core := "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default"
	l.send("ok", "POST", secrets, jsonType, fmt.Sprintf(`{"metadata":{"name":"s"},"data":{"p":%q},"stringData":{"q":%q}}`, b64(l.secret()), l.secret()))
	l.send("ok", "POST", secrets+"?dryRun=All", jsonType, fmt.Sprintf(`{"metadata":{"name":"dry"},"stringData":{"q":%q}}`, l.secret()))
	l.send("ok", "PUT", secrets+"/s", jsonType, fmt.Sprintf(`{"metadata":{"name":"s"},"stringData":{"q":%q}}`, l.secret()))
	l.send("ok", "POST", "/api/v1/namespaces/kube-system/secrets", jsonType, fmt.Sprintf(
		`{"metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token","stringData":{"token-id":"abcdef","token-secret":%q}}`, l.secret()))
	l.send("ok", "POST", core+"/configmaps", jsonType, fmt.Sprintf(`{"metadata":{"name":"c"},"data":{"password":%q}}`, l.secret()))

	bad := func(body string) { l.t.Helper(); l.send("refused", "POST", secrets, jsonType, body) }
	bad(fmt.Sprintf(`{"data":{"p":%q`, b64(l.secret())))                                                             // cut off
	bad(fmt.Sprintf(`{"stringData":{"p":%q}},`, l.secret()))                                                         // and more
	bad(fmt.Sprintf(`%q`, l.secret()))                                                                               // no object
	bad(l.secret())                                                                                                  // no JSON
	bad(fmt.Sprintf(`{"metadata":{"name":"x"},"data":{"p":%q}}`, l.secret()+"!"))                                    // no base64
	bad(fmt.Sprintf(`{"metadata":{"name":"x"},"data":%q}`, l.secret()))                                              // no map
	bad(fmt.Sprintf(`{"metadata":{"name":"x"},"stringData":{"p":{"deep":%q}}}`, l.secret()))                         // no string
	bad(fmt.Sprintf(`{"metadata":{"name":"x"},"stringData":{"bad key!":%q}}`, l.secret()))                           // no key
	bad(fmt.Sprintf(`{"metadata":{"name":"x"},"type":"kubernetes.io/tls","stringData":{"tls.key":%q}}`, l.secret())) // no certificate
	bad(fmt.Sprintf(`{"metadata":{"name":"x"},"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":%q}}`, l.secret()))
	l.send("refused", "POST", secrets, yamlType, "kind: Secret\nstringData: ["+l.secret()+"\n")
	l.send("refused", "POST", secrets+"?fieldValidation=Strict", jsonType, fmt.Sprintf(`{"metadata":{"name":"x"},"stringdata":{"p":%q}}`, l.secret()))
	l.send("refused", "PUT", secrets+"/s", jsonType, fmt.Sprintf(`{"metadata":{"name":"s"},"type":"another","stringData":{"q":%q}}`, l.secret()))
	l.send("ok", "POST", secrets, jsonType, fmt.Sprintf(`{"metadata":{"name":"fixed"},"immutable":true,"stringData":{"q":%q}}`, l.secret()))
	l.send("refused", "PUT", secrets+"/fixed", jsonType, fmt.Sprintf(`{"metadata":{"name":"fixed"},"immutable":true,"stringData":{"q":%q}}`, l.secret()))
	l.send("ok", "DELETE", secrets+"/fixed", jsonType, "")
}

func (l *leaks) plantInPatches() {
	s := "/api/v1/namespaces/default/secrets/s"
	l.send("ok", "PATCH", s, mergePatch, fmt.Sprintf(`{"stringData":{"m":%q}}`, l.secret()))
	l.send("ok", "PATCH", s, strategicPatch, fmt.Sprintf(`{"data":{"st":%q}}`, b64(l.secret())))
	l.send("ok", "PATCH", s, jsonPatch, fmt.Sprintf(`[{"op":"add","path":"/data/j","value":%q}]`, b64(l.secret())))
	l.send("ok", "PATCH", s+"?fieldManager=me", applyPatch, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: "+l.secret()+"}\n")

	bad := func(kind, body string) { l.t.Helper(); l.send("refused", "PATCH", s+"?fieldManager=me", kind, body) }
	for _, kind := range []string{mergePatch, strategicPatch} {
		bad(kind, fmt.Sprintf(`{"stringData":{"m":%q`, l.secret()))
		bad(kind, fmt.Sprintf(`{"data":{"m":{"deep":%q}}}`, l.secret()))
		bad(kind, fmt.Sprintf(`{"data":{"m":%q}}`, l.secret()+"!"))
		bad(kind, fmt.Sprintf(`{"data":%q}`, l.secret()))
		l.send("refused", "PATCH", s+"?fieldValidation=Strict", kind, fmt.Sprintf(`{"unknown":1,"stringData":{"m":%q}}`, l.secret()))
		bad(kind, `{"data":{"p":1}}`)
		bad(kind, `{"immutable":"no"}`)
	}
	bad(mergePatch, `{"kind":"Pod"}`) // which spoils the whole object, with what is in it
	bad(jsonPatch, fmt.Sprintf(`[{"op":"test","path":"/data/p","value":%q}]`, l.secret()))
	bad(jsonPatch, fmt.Sprintf(`[{"op":"add","path":"/data/none/deep","value":%q}]`, l.secret()))
	bad(jsonPatch, fmt.Sprintf(`[{"op":"replace","path":"/immutable","value":%q}]`, l.secret()))
	bad(jsonPatch, fmt.Sprintf(`[{"op":%q}]`, l.secret()[:0]+"what"))
	bad(applyPatch, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: {deep: "+l.secret()+"}}\n")
	bad(applyPatch, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: "+l.secret()+"\n")
	bad(applyPatch, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nnothing: "+l.secret()+"\n")
	bad(applyPatch, "apiVersion: v1\nkind: Secret\nstringData: ["+l.secret()+"\n")
	bad(applyPatch, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {m: "+b64(l.secret())+"}\n") // another manager's
}

func (l *leaks) plantInCredentials(cluster *testcluster.Cluster) {
	l.send("ok", "POST", "/api/v1/namespaces/default/serviceaccounts", jsonType, `{"metadata":{"name":"robot"}}`)
	made := l.send("ok", "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", jsonType, `{"spec":{"expirationSeconds":3600}}`)
	token := made.object().Object["status"].(map[string]any)["token"].(string)
	pieces := strings.Split(token, ".")
	l.planted = append(l.planted, token, pieces[2])

	config := cluster.REST(pki.Admin)
	config.CertData, config.KeyData = nil, nil
	stranger := *l
	stranger.client = clientFor(l.t, config)
	with := func(header, value string) {
		l.t.Helper()
		a := stranger.do("GET", "/api/v1/secrets", "", header, value)
		require.Contains(l.t, []int{401, 403}, a.code, string(a.body))
		fmt.Fprintf(&l.errors, "%s\n", a.body)
	}
	with("Authorization", "Bearer "+token)
	with("Authorization", "Bearer "+l.secret())
	with("Authorization", "Bearer abcdef."+l.secret())
	with("Authorization", "Bearer "+pieces[0]+"."+pieces[1]+"."+b64(l.secret()))
	with("Authorization", "Basic "+b64("root:"+l.secret()))
	with("Authorization", l.secret())
	with("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."+b64(l.secret()))
	with("Cookie", "session="+l.secret())
	reviews := "/apis/authentication.k8s.io/v1/tokenreviews"
	l.send("ok", "POST", reviews, jsonType, fmt.Sprintf(`{"spec":{"token":%q}}`, l.secret()))
	l.send("ok", "POST", reviews, jsonType, fmt.Sprintf(`{"spec":{"token":%q}}`, token))
	l.send("refused", "POST", reviews, jsonType, fmt.Sprintf(`{"spec":{"token":%q`, l.secret()))
	l.send("refused", "POST", reviews, jsonType, fmt.Sprintf(`{"spec":{"token":{"t":%q}}}`, l.secret()))
}

func (l *leaks) plantInURLs() {
	for _, path := range []string{
		"/api/v1/secrets?access_token=", "/nothing?password=", "/api/v1/namespaces/default/pods/p/proxy/login?key=",
		"/api/v1/nodes/n/proxy/run?q=", "/api/v1/namespaces/default/services/s/proxy/?x=", "/apis/none.example/v1/x?client_secret=",
	} {
		a := l.get(path + l.secret())
		if a.code >= 400 {
			fmt.Fprintf(&l.errors, "%s\n", a.body)
		}
	}
	a := l.post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", fmt.Sprintf(`{"metadata":{"name":"w"},"webhooks":[{
		"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://me:%s@hooks.example/"}}]}`, l.secret()))
	a.fails(422, "Invalid", "user information")
	fmt.Fprintf(&l.errors, "%s\n", regexp.MustCompile(`"uid":"[^"]*"`).ReplaceAllString(string(a.body), ""))
}
