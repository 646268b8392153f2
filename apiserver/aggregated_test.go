package apiserver_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver"
	"kontiki/apiserver/aggregation/extensiontest"
	"kontiki/internal/pki"
	"kontiki/raftstore"
)

const (
	apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"
	extensionV1     = apiServicesPath + "/v1.extension.example.com"
	sailsPath       = "/apis/extension.example.com/v1/namespaces/default/sails"
)

// ownAddress is an address of this machine that is not loopback: no Service may lead to that.
func ownAddress(t *testing.T) string {
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, one := range all {
		if network, ok := one.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Skip("needs an IPv4 address that is not loopback")
	return ""
}

// extended is a store with an extension server, and API servers in front of it.
type extended struct {
	t         *testing.T
	keys      *pki.PKI
	store     *raftstore.Member
	extension *extensiontest.Server
}

func newExtended(t *testing.T) *extended {
	e := &extended{t: t}
	address := ownAddress(t)
	dir := t.TempDir()
	var err error
	e.keys, err = pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	e.store, err = raftstore.Open(raftstore.Config{Dir: dir + "/store", NodeID: "n", Bootstrap: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.store.Close()) })
	e.extension = extensiontest.Start(t, address, e.keys.FrontProxyCA())
	return e
}

// serve starts an API server that the others hear of by its Lease.
func (e *extended) serve(number int) (config *rest.Config, stop func()) {
	return serveOn(e.t, e.store, e.keys, e.config(number))
}

func (e *extended) config(number int) apiserver.Config {
	return apiserver.Config{
		ClientCA: e.keys.CA, FrontProxyTLS: e.keys.Live(e.keys.FrontProxyClient), FrontProxyCA: e.keys.FrontProxyCA, FrontProxyName: "front-proxy-client",
		AdvertiseAddress: netip.MustParseAddr(fmt.Sprintf("10.1.2.%d", number)),
	}
}

// register makes the Service, its endpoints and the APIServices of both versions.
func (e *extended) register(c *client) {
	host, port, err := net.SplitHostPort(e.extension.Listener.Addr().String())
	require.NoError(e.t, err)
	c.post("/api/v1/namespaces/default/services", `{"metadata":{"name":"extension"},"spec":{"ports":[{"name":"https","port":443}]}}`).ok()
	c.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", fmt.Sprintf(
		`{"metadata":{"name":"extension-1","labels":{"kubernetes.io/service-name":"extension"}},"addressType":"IPv4","ports":[{"name":"https","port":%s}],"endpoints":[{"addresses":[%q]}]}`, port, host)).ok()
	for i, version := range []string{"v1", "v1beta1"} {
		c.post(apiServicesPath, e.apiService(extensiontest.Group, version, strconv.Itoa(10+i))).ok()
	}
}

func (e *extended) apiService(group, version, priority string) string {
	bundle, err := json.Marshal(e.extension.CABundle)
	require.NoError(e.t, err)
	return fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"%[2]s.%[1]s"},"spec":{"group":%[1]q,"version":%[2]q,
"groupPriorityMinimum":2000,"versionPriority":%[3]s,"caBundle":%[4]s,"service":{"namespace":"default","name":"extension"}}}`, group, version, priority, bundle)
}

// says waits until an APIService has a condition, which it returns.
func (c *client) says(path, reason string) (found apiregistrationv1.APIServiceCondition) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		var one apiregistrationv1.APIService
		require.NoError(c.t, json.Unmarshal(c.get(path).ok().body, &one))
		for _, condition := range one.Status.Conditions {
			found = condition
		}
		return found.Reason == reason
	}, time.Minute, 10*time.Millisecond, "%s: want %s, have %+v", path, reason, &found)
	return found
}

// soon waits until a request gets an answer with a code.
func (c *client) soon(path string, code int) (last answer) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { last = c.get(path); return last.code == code }, time.Minute, 10*time.Millisecond, "%s: want %d", path, code)
	return last
}

// Group versions of this server have APIServices, in Kubernetes' order, which come back; those of custom resources come and go.
func TestLocalAPIServices(t *testing.T) {
	_, c := start(t)
	var list apiregistrationv1.APIServiceList
	require.NoError(t, json.Unmarshal(c.get(apiServicesPath).ok().body, &list))
	names := map[string]apiregistrationv1.APIService{}
	for _, one := range list.Items {
		names[one.Name] = one
		require.Nil(t, one.Spec.Service)
		require.Equal(t, "onstart", one.Labels["kube-aggregator.kubernetes.io/automanaged"])
		require.Equal(t, "Local", one.Status.Conditions[0].Reason)
		require.Equal(t, "Local APIServices are always available", one.Status.Conditions[0].Message)
	}
	require.Len(t, names, 22)
	require.NotContains(t, names, "v1.apiregistration.k8s.io")
	require.EqualValues(t, 18000, names["v1."].Spec.GroupPriorityMinimum)
	require.EqualValues(t, 30, names["v2.autoscaling"].Spec.VersionPriority)

	c.delete(apiServicesPath+"/v1.apps", "").ok()
	c.soon(apiServicesPath+"/v1.apps", 200)
	c.post(definitionsPath, boatDefinition("", "")).ok()
	custom := c.soon(apiServicesPath+"/v1.example.com", 200).object()
	require.Equal(t, "true", custom.GetLabels()["kube-aggregator.kubernetes.io/automanaged"])
	require.Equal(t, int64(1000), custom.Object["spec"].(map[string]any)["groupPriorityMinimum"])
	c.patch(apiServicesPath+"/v1.example.com", mergePatch, `{"spec":{"groupPriorityMinimum":7}}`).ok()
	require.Eventually(t, func() bool {
		return c.get(apiServicesPath + "/v1.example.com").ok().object().Object["spec"].(map[string]any)["groupPriorityMinimum"] == int64(1000)
	}, time.Minute, 10*time.Millisecond, "it is kept as it was made")
	c.patch(apiServicesPath+"/v1.apps", mergePatch, `{"spec":{"groupPriorityMinimum":7}}`).ok()
	require.Eventually(t, func() bool {
		return strings.HasSuffix(strings.TrimSpace(string(c.get("/apis").ok().body)), `"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`)
	}, time.Minute, 10*time.Millisecond, "whose priority is low is last")
	c.delete(definitionsPath+"/boats.example.com", "").ok()
	c.soon(apiServicesPath+"/v1.example.com", 404)
}

func TestAPIServiceIsJudged(t *testing.T) {
	_, c := start(t)
	c.post(apiServicesPath, `{"metadata":{"name":"x"},"spec":{"group":"g.example.com","version":"v1","groupPriorityMinimum":1,"versionPriority":1}}`).
		fails(422, metav1.StatusReasonInvalid, "metadata.name: Invalid value: \"x\": must be `spec.version+\".\"+spec.group`: \"v1.g.example.com\"")
	c.post(apiServicesPath, `{"metadata":{"name":"v1.g.example.com"},"spec":{"group":"g.example.com","version":"v1","groupPriorityMinimum":0,"versionPriority":1001,"caBundle":"eA=="}}`).
		fails(422, metav1.StatusReasonInvalid, "local APIServices may not have a caBundle")
}

// Extension servers find out whom to believe.
func TestTrustOfTheFrontProxy(t *testing.T) {
	e := newExtended(t)
	config, stop := e.serve(1)
	defer stop()
	var published corev1.ConfigMap
	require.NoError(t, json.Unmarshal(clientFor(t, config).get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication").ok().body, &published))
	require.Equal(t, map[string]string{
		"client-ca-file": string(e.keys.CA()), "requestheader-client-ca-file": string(e.keys.FrontProxyCA()),
		"requestheader-allowed-names": `["front-proxy-client"]`, "requestheader-username-headers": `["X-Remote-User"]`,
		"requestheader-uid-headers": `["X-Remote-Uid"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}, published.Data)
}

// Three servers have another one behind them: all of them send requests on, one says whether it is there, and with it gone
// everything else goes on.
func TestAggregationOnEveryServer(t *testing.T) {
	e := newExtended(t)
	var servers []*client
	var configs []*rest.Config
	var stops []func()
	for i := range 3 {
		config, stop := e.serve(i + 1)
		servers, configs, stops = append(servers, clientFor(t, config)), append(configs, config), append(stops, stop)
	}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	e.register(servers[0])
	c := servers[2]
	require.Equal(t, "all checks passed", c.says(extensionV1, "Passed").Message)
	c.says(apiServicesPath+"/v1beta1.extension.example.com", "Passed")
	for _, each := range servers {
		each.soon(sailsPath, 200)
	}
	e.extension.Seen()
	require.JSONEq(t, `{"kind":"Sail","spec":1}`, string(c.post(sailsPath, `{"kind":"Sail","spec":1}`).ok().body))
	c.get(sailsPath, "Impersonate-User", "jane", "Impersonate-Group", "system:masters", "X-Remote-User", "root").ok()
	seen := e.extension.Seen()
	require.Len(t, seen, 2)
	require.Equal(t, []string{"kubernetes-admin"}, seen[0].Header["X-Remote-User"])
	require.Contains(t, seen[0].Header["X-Remote-Group"], "system:masters")
	require.Equal(t, []string{"jane"}, seen[1].Header["X-Remote-User"])

	// Who may not, is not sent on.
	c.get(sailsPath, "Impersonate-User", "nobody").fails(403, metav1.StatusReasonForbidden, `cannot list resource "sails" in API group "extension.example.com" in the namespace "default"`)
	require.Empty(t, e.extension.Seen())

	e.isDiscovered(c, configs[2])
	e.watches(configs[1])

	// Down: each server knows soon, says so, and does everything else as before.
	var checks atomic.Int64
	e.extension.Misbehave(func(w http.ResponseWriter, _ *http.Request) {
		checks.Add(1)
		w.WriteHeader(500)
	})
	c.patch("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/extension-1", mergePatch, `{"metadata":{"labels":{"again":"1"}}}`).ok()
	failed := c.says(extensionV1, "FailedDiscoveryCheck")
	require.Contains(t, failed.Message, "500")
	for _, each := range servers {
		require.Eventually(t, func() bool {
			a := each.get(sailsPath)
			return a.code == 503 && strings.Contains(a.status().Message, "service unavailable: APIService v1.extension.example.com: FailedDiscoveryCheck")
		}, time.Minute, 10*time.Millisecond)
		require.Equal(t, metav1.StatusReasonServiceUnavailable, each.get(sailsPath).status().Reason)
		each.get("/apis/apps/v1/deployments").ok()
	}
	e.isStale(configs[2])

	// Nobody writes against anybody: while all of them go on checking, nothing is written.
	before, done := c.get(extensionV1).ok().resourceVersion(), checks.Load()
	require.Eventually(t, func() bool { return checks.Load() > done+50 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, before, c.get(extensionV1).ok().resourceVersion())

	e.extension.Misbehave(nil)
	stops[0]() // the one that has written so far
	stops = stops[1:]
	c.patch("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/extension-1", mergePatch, `{"metadata":{"labels":{"again":"2"}}}`).ok()
	c.says(extensionV1, "Passed")
	servers[1].soon(sailsPath, 200)
	c.delete(extensionV1, "").ok()
	for _, each := range servers[1:] {
		each.soon(sailsPath, 404)
	}
}

// TestAggregatedWatchesEndWithAServer: a server that stops does not wait until somebody ends a watch at another one.
func TestAggregatedWatchesEndWithAServer(t *testing.T) {
	e := newExtended(t)
	with := e.config(1)
	with.StopGrace = time.Hour
	config, stop := serveOn(t, e.store, e.keys, with)
	c := clientFor(t, config)
	e.register(c)
	c.soon(sailsPath, 200)
	events := c.watch(sailsPath + "?watch=true")
	e.extension.Events <- `{"type":"ADDED","object":{"kind":"Sail","metadata":{"name":"a"}}}`
	require.Equal(t, "ADDED", c.next(events).Type)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		require.Fail(t, "the server waits for a watch")
	}
}

// isDiscovered: what the extension has is in all documents.
func (e *extended) isDiscovered(c *client, config *rest.Config) {
	var group metav1.APIGroup
	require.NoError(e.t, json.Unmarshal(c.get("/apis/extension.example.com").ok().body, &group))
	require.Equal(e.t, "v1beta1", group.PreferredVersion.Version, "of the higher priority")
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(config)
	require.Eventually(e.t, func() bool {
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			return false
		}
		for _, list := range lists {
			if list.GroupVersion == "extension.example.com/v1" && len(list.APIResources) == 2 {
				return true
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond, "aggregated discovery")
	require.Contains(e.t, string(c.get("/apis/extension.example.com/v1").ok().body), `"name":"sails"`, "its own document")
	c.soon("/openapi/v3/apis/extension.example.com/v1?hash=1", 200)
	require.Eventually(e.t, func() bool {
		return strings.Contains(string(c.get("/openapi/v3").ok().body), `"apis/extension.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/extension.example.com/v1?hash=1"}`)
	}, time.Minute, 10*time.Millisecond)
	require.NotContains(e.t, string(c.get("/openapi/v3").ok().body), "hash=lie")
	var document struct {
		Paths       map[string]any
		Definitions map[string]struct{ Description string }
	}
	require.NoError(e.t, json.Unmarshal(c.get("/openapi/v2").ok().body, &document))
	require.Contains(e.t, document.Paths, "/apis/extension.example.com/v1/sails")
	require.Contains(e.t, document.Paths, "/apis/apps/v1/namespaces/{namespace}/deployments")
	require.NotContains(e.t, fmt.Sprint(document.Paths["/apis/apps/v1/deployments"]), "mine now")
	require.Equal(e.t, "another one", document.Definitions["io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta_v2"].Description)
	require.NotEqual(e.t, "another one", document.Definitions["io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"].Description)
}

// isStale: a client is told which group version is missing, and has the others.
func (e *extended) isStale(config *rest.Config) {
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(config)
	require.Eventually(e.t, func() bool {
		groups, lists, err := client.ServerGroupsAndResources()
		missing, failed := clientdiscovery.GroupDiscoveryFailedErrorGroups(err)
		return failed && len(missing) == 2 && len(groups) > 20 && len(lists) > 20
	}, time.Minute, 10*time.Millisecond)
}

// watches: events and upgraded connections go through a server's whole chain.
func (e *extended) watches(config *rest.Config) {
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	require.NoError(e.t, err)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(config.Host, "https://"), &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true})
	require.NoError(e.t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s/a/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", sailsPath)
	require.NoError(e.t, err)
	lines := bufio.NewReader(conn)
	answer, err := http.ReadResponse(lines, nil)
	require.NoError(e.t, err)
	require.Equal(e.t, http.StatusSwitchingProtocols, answer.StatusCode)
	_, err = fmt.Fprintln(conn, "hello")
	require.NoError(e.t, err)
	line, err := lines.ReadString('\n')
	require.NoError(e.t, err)
	require.Equal(e.t, "echo hello\n", line)

	events := clientFor(e.t, config).watch(sailsPath + "?watch=true")
	e.extension.Events <- `{"type":"ADDED","object":{"kind":"Sail","metadata":{"name":"a"}}}`
	require.Equal(e.t, "ADDED", clientFor(e.t, config).next(events).Type)
}
