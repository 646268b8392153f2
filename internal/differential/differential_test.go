package differential

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"kontiki/apiserver/admission"
	"kontiki/internal/etcdtest"
	"kontiki/internal/freeport"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// upstreamVariable names a kube-apiserver 1.37.2; make diff-upstream sets it.
const upstreamVariable = "KONTIKI_UPSTREAM"

// reportVariable names a file for everything that differs, known or not; optional.
const reportVariable = "KONTIKI_DIFF_REPORT"

// onlyVariable and stepsVariable are patterns of the scenarios ("pods|jobs.batch") and steps ("create.*") to run;
// empty means all. What steps build on ("create") must be among them.
const (
	onlyVariable  = "KONTIKI_DIFF_ONLY"
	stepsVariable = "KONTIKI_DIFF_STEPS"
)

// TestAgainstUpstream fails for every difference without a reason in testdata/known.tsv.
func TestAgainstUpstream(t *testing.T) {
	program := os.Getenv(upstreamVariable)
	if program == "" {
		t.Skipf("%s does not name a kube-apiserver 1.37.2: build one with ../shared/conformance/build kube-apiserver and run make diff-upstream", upstreamVariable)
	}
	require.NoError(t, apiextensionsv1.AddToScheme(scheme.Scheme))                                   // their protobuf
	cluster := testcluster.StartAdmitting(t, admission.Config{Disabled: []string{"ServiceAccount"}}) // as the other side
	config := cluster.REST(pki.Admin)
	upstreamConfig := startUpstream(t, program, config)
	upstream, kontiki := serverOf(t, upstreamConfig), serverOf(t, config)
	makeNamespace(t, upstream, kontiki)
	makeDefinitions(t, upstream, kontiki)
	data, err := os.ReadFile("testdata/customs.yaml")
	require.NoError(t, err)
	customs, err := Customs(data)
	require.NoError(t, err)
	subjects := subjectsOf(t, upstreamConfig)
	scenarios := Select(append(Scenarios(subjects), customs...), patternOf(t, onlyVariable), patternOf(t, stepsVariable))
	found, err := Run(t.Context(), upstream, kontiki, scenarios)
	require.NoError(t, err)
	judge(t, scenarios, found)
}

// patternOf is the pattern in an environment variable, of a whole text.
func patternOf(t *testing.T, variable string) *regexp.Regexp {
	value := os.Getenv(variable)
	if value == "" {
		value = ".*"
	}
	out, err := regexp.Compile("^(?:" + value + ")$")
	require.NoError(t, err)
	return out
}

func judge(t *testing.T, scenarios []Scenario, found []Difference) {
	data, err := os.ReadFile("testdata/known.tsv")
	require.NoError(t, err)
	known, err := ParseKnown(data)
	require.NoError(t, err)
	requests, kinds := 0, map[string]string{}
	for _, s := range scenarios {
		requests += len(s.Steps)
		kinds[s.Name] = s.Kind
	}
	var unknown, explained []Difference
	unused := slices.Clone(known)
	for _, d := range found {
		k := Explain(known, d)
		if k == nil {
			unknown = append(unknown, d)
			continue
		}
		explained = append(explained, d)
		unused = slices.DeleteFunc(unused, func(other Known) bool { return other == *k })
	}
	findings := Group(unknown, kinds)
	t.Logf("%d requests, %d differences, of which %d have a reason; %d distinct ones have none", requests, len(found), len(explained), len(findings))
	var report strings.Builder
	for _, f := range findings {
		fmt.Fprintln(&report, f)
	}
	if path := os.Getenv(reportVariable); path != "" {
		writeReport(t, path, report.String(), Group(explained, kinds), known)
	}
	for _, k := range unused {
		t.Logf("explains nothing in this run: %s", k.pattern)
	}
	if len(findings) > 0 {
		t.Errorf("differences without a reason:\n%s", report.String())
	}
}

// writeReport writes what differs without a reason, then what has one, each with it.
func writeReport(t *testing.T, path, unknown string, explained []Finding, known []Known) {
	var out strings.Builder
	fmt.Fprintln(&out, unknown)
	for _, f := range explained {
		fmt.Fprintf(&out, "%s\n    reason   %s\n", f, Explain(known, f.Example).Reason)
	}
	require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
}

// startUpstream starts a kube-apiserver over an etcd; it trusts the certificates that config has.
func startUpstream(t *testing.T, program string, config *rest.Config) *rest.Config {
	etcd := etcdtest.Start(t)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	require.NoError(t, os.WriteFile(ca, config.CAData, 0o600))
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	tokens := filepath.Join(dir, "tokens.key")
	require.NoError(t, os.WriteFile(tokens, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
	port, err := freeport.Take()
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program,
		"--etcd-servers="+etcd.DirectURL(), "--cert-dir="+dir, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--client-ca-file="+ca, "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+tokens, "--service-account-signing-key-file="+tokens, "--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount", "--allow-privileged=true", "--endpoint-reconciler-type=none",
		"--feature-gates=CBORServingAndStorage=true") // off by default, and served by Kontiki
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if data, err := os.ReadFile(log.Name()); err == nil && t.Failed() && len(data) > 0 {
			t.Logf("upstream's last words: %s", data[max(0, len(data)-2000):])
		}
	})
	out := rest.CopyConfig(config)
	out.Host = "https://127.0.0.1:" + strconv.Itoa(port)
	out.TLSClientConfig.CAData, out.TLSClientConfig.Insecure = nil, true // its certificate is self-signed; loopback only
	server := serverOf(t, out)
	require.Eventually(t, func() bool {
		response, err := server.Client.Get(server.URL + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, 2*time.Minute, 100*time.Millisecond, "upstream does not become ready")
	return out
}

func serverOf(t *testing.T, config *rest.Config) Server {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	return Server{URL: strings.TrimSuffix(config.Host, "/"), Client: client}
}

func makeNamespace(t *testing.T, servers ...Server) {
	for _, server := range servers {
		a, err := newSession(server).do(t.Context(), Step{Method: "POST", Path: "/api/v1/namespaces",
			Body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + namespace + `"}}`})
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.code, a.body)
	}
}

// makeDefinitions makes the definitions of testdata/definitions.yaml, and waits until each server has them in discovery.
func makeDefinitions(t *testing.T, servers ...Server) {
	data, err := os.ReadFile("testdata/definitions.yaml")
	require.NoError(t, err)
	definitions, err := Manifests(data)
	require.NoError(t, err)
	for _, server := range servers {
		for _, d := range definitions {
			body, err := d.MarshalJSON()
			require.NoError(t, err)
			a, err := newSession(server).do(t.Context(), Step{Method: "POST", Path: definitionsPath, Body: string(body)})
			require.NoError(t, err)
			require.Equal(t, http.StatusCreated, a.code, a.body)
		}
		for _, version := range []string{"v1", "v2", "v1alpha1", "v1beta1"} {
			require.Eventually(t, func() bool {
				a, err := newSession(server).do(t.Context(), Step{Method: "GET", Path: "/apis/differential.example.com/" + version})
				return err == nil && strings.Contains(text(a.body), "gadgets") && (version != "v1" || strings.Contains(text(a.body), "machines"))
			}, time.Minute, 50*time.Millisecond, "%s does not serve %s", server.URL, version)
		}
	}
}

// subjectsOf joins the manifests with what upstream serves.
func subjectsOf(t *testing.T, upstream *rest.Config) []Subject {
	data, err := os.ReadFile("testdata/manifests.yaml")
	require.NoError(t, err)
	manifests, err := Manifests(data)
	require.NoError(t, err)
	client, err := discovery.NewDiscoveryClientForConfig(upstream)
	require.NoError(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	var out []Subject
	for _, obj := range manifests {
		gvk := obj.GroupVersionKind()
		i := slices.IndexFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == gvk.GroupVersion().String() })
		require.GreaterOrEqual(t, i, 0, "upstream does not serve %v", gvk)
		s := Subject{Group: gvk.Group, Object: obj, Subresources: map[string][]string{}}
		for _, r := range lists[i].APIResources {
			if name, sub, ok := strings.Cut(r.Name, "/"); ok {
				if name == s.Resource {
					s.Subresources[sub] = r.Verbs
				}
			} else if r.Kind == gvk.Kind {
				s.Resource, s.Namespaced, s.Verbs = r.Name, r.Namespaced, r.Verbs
			}
		}
		root := "/apis/" + gvk.Group + "/" + gvk.Version
		if gvk.Group == "" {
			root = "/api/" + gvk.Version
		}
		s.Collection = root + "/" + s.Resource
		if s.Namespaced {
			s.Collection = root + "/namespaces/" + namespace + "/" + s.Resource
		}
		s.Second, s.Protobuf = secondName(obj), protobufOf(t, obj)
		inCBOR, err := direct.Marshal(obj.Object)
		require.NoError(t, err)
		s.CBOR = string(inCBOR)
		out = append(out, s)
	}
	return out
}

// secondName is a name for another object like obj. Namespaces take long to go, and a second one of a kind that names an
// address or a signer needs another such name.
func secondName(obj *unstructured.Unstructured) string {
	switch obj.GetKind() {
	case "Namespace", "IPAddress", "ServiceCIDR", "APIService", "CustomResourceDefinition":
		return ""
	}
	return obj.GetName() + "-2"
}

// protobufOf is obj as a client in Go sends it; empty, if it has no such form.
func protobufOf(t *testing.T, obj *unstructured.Unstructured) string {
	typed, err := scheme.Scheme.New(obj.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return ""
	}
	require.NoError(t, err)
	data, err := obj.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, typed))
	typed.GetObjectKind().SetGroupVersionKind(obj.GroupVersionKind())
	encoded, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), typed)
	require.NoError(t, err)
	return string(encoded)
}
