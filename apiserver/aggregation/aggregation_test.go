package aggregation_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver/aggregation"
	"kontiki/apiserver/aggregation/extensiontest"
	"kontiki/internal/pki"
)

// waitTime is how long a test waits for what must come: the machine may be busy.
const waitTime = time.Minute

var (
	first  = schema.GroupVersion{Group: extensiontest.Group, Version: "v1"}
	second = schema.GroupVersion{Group: extensiontest.Group, Version: "v1beta1"}
)

// front is an Aggregator before one extension server, and what it has reported.
type front struct {
	*aggregation.Aggregator
	t       *testing.T
	backend *extensiontest.Server

	mu      sync.Mutex // guards what follows
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice
	address string
	said    map[string]apiregistrationv1.APIServiceCondition
}

func newFront(t *testing.T) *front {
	keys, err := pki.Open(t.TempDir()+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	f := &front{t: t, backend: extensiontest.Start(t, "127.0.0.1", keys.FrontProxyCA()), said: map[string]apiregistrationv1.APIServiceCondition{}}
	f.address = f.backend.Listener.Addr().String()
	port := int32(443)
	f.service = &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "https", Port: port}}}}
	name := "https"
	f.slices = []*discoveryv1.EndpointSlice{{
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}}
	f.Aggregator = aggregation.New(aggregation.Config{
		TLS: keys.Live(keys.FrontProxyClient),
		Endpoint: func(context.Context, string, string, int32) (string, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.address == "" {
				return "", errors.New(`no endpoints available for service "extension"`)
			}
			return f.address, nil
		},
		Service: func(context.Context, string, string) (*corev1.Service, []*discoveryv1.EndpointSlice, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.service, f.slices, nil
		},
		Report: func(_ context.Context, name string, c apiregistrationv1.APIServiceCondition) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.said[name] = c
		},
	})
	t.Cleanup(f.Close)
	return f
}

// apiService leads to the front's backend.
func (f *front) apiService(gv schema.GroupVersion) *apiregistrationv1.APIService {
	port := int32(443)
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: 1000, VersionPriority: 10, CABundle: f.backend.CABundle,
			Service: &apiregistrationv1.ServiceReference{Namespace: extensiontest.Namespace, Name: extensiontest.Service, Port: &port},
		},
	}
}

// says waits until a check has said something.
func (f *front) says(gv schema.GroupVersion, reason, message string) {
	f.t.Helper()
	var last apiregistrationv1.APIServiceCondition
	require.Eventually(f.t, func() bool {
		f.mu.Lock()
		last = f.said[gv.Version+"."+gv.Group]
		f.mu.Unlock()
		return last.Reason == reason && strings.Contains(last.Message, message)
	}, waitTime, 5*time.Millisecond, "want %s %s, have %+v", reason, message, &last)
}

// change changes what the cluster says, and tells the Aggregator.
func (f *front) change(do func()) {
	f.mu.Lock()
	do()
	f.mu.Unlock()
	f.Changed(extensiontest.Namespace, extensiontest.Service)
}

// ask sends a request through the Aggregator.
func (f *front) ask(r *http.Request, q aggregation.Request) (*httptest.ResponseRecorder, error) {
	w := httptest.NewRecorder()
	return w, f.Proxy(w, r, first, q)
}

const sails = "/apis/extension.example.com/v1/namespaces/default/sails"

// A backend is told who asks, by the front proxy's certificate, and nothing of what the client says about itself.
func TestWhoAsks(t *testing.T) {
	f := newFront(t)
	f.Set([]*apiregistrationv1.APIService{f.apiService(first)})
	f.says(first, "Passed", "all checks passed")
	r := httptest.NewRequest("GET", sails+"//a%2Fb?labelSelector=x%3Dy", nil)
	for name, value := range map[string]string{
		"Authorization": "Bearer secret", "X-Remote-User": "admin", "X-Remote-Group": "system:masters", "X-Remote-Extra-Scopes": "all",
		"X_Remote_User": "admin", "Impersonate-User": "admin", "X-Forwarded-For": "10.9.9.9", "Keep-Alive": "1", "Accept": "application/json",
	} {
		r.Header[name] = []string{value}
	}
	w, err := f.ask(r, aggregation.Request{ID: "the-id", User: aggregation.User{
		Name: "jane", UID: "7", Groups: []string{"dev", "ops"}, Extra: map[string][]string{"acme.org/team": {"a", "b"}},
	}})
	require.NoError(t, err)
	require.Equal(t, 200, w.Code, w.Body)
	seen := f.backend.Seen()
	require.Len(t, seen, 1)
	require.Equal(t, "front-proxy-client", seen[0].Proxy)
	require.Equal(t, sails+"//a%2Fb?labelSelector=x%3Dy", seen[0].URI)
	header := seen[0].Header
	require.Equal(t, []string{"jane"}, header["X-Remote-User"])
	require.Equal(t, []string{"7"}, header["X-Remote-Uid"])
	require.Equal(t, []string{"dev", "ops"}, header["X-Remote-Group"])
	require.Equal(t, []string{"a", "b"}, header["X-Remote-Extra-Acme.org%2fteam"])
	require.Equal(t, []string{"the-id"}, header["Audit-Id"])
	require.Equal(t, []string{"192.0.2.1"}, header["X-Forwarded-For"], "that of the connection, not what the client says")
	for _, name := range []string{"Authorization", "X_Remote_User", "X-Remote-Extra-Scopes", "Impersonate-User", "Keep-Alive"} {
		require.NotContains(t, header, name)
	}
}

// Whatever is wrong with a backend, the client is told, in time, and the condition says what it is.
func TestWhatMayBeWrong(t *testing.T) {
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, test := range map[string]struct {
		misbehave       http.HandlerFunc
		change          func(f *front)
		reason, message string
	}{
		"an error": {misbehave: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", 500) }, reason: "FailedDiscoveryCheck", message: "bad status from https://extension.default.svc:443/apis/extension.example.com/v1: 500"},
		"a redirect": {misbehave: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere/", http.StatusFound)
		}, reason: "FailedDiscoveryCheck", message: "302"},
		"it hangs":            {misbehave: func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, reason: "FailedDiscoveryCheck", message: "context deadline exceeded"},
		"another group":       {misbehave: body(`{"groupVersion":"apps/v1","resources":[]}`), reason: "FailedDiscoveryCheck", message: `is about the group version "apps/v1"`},
		"no list":             {misbehave: body(`hello`), reason: "FailedDiscoveryCheck", message: "is no list of resources"},
		"a huge answer":       {misbehave: body(strings.Repeat("x", 5<<20)), reason: "FailedDiscoveryCheck", message: "the answer is too large: more than 4194304 bytes"},
		"it closes":           {misbehave: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, reason: "FailedDiscoveryCheck", message: "EOF"},
		"it is down":          {change: func(f *front) { f.address = "127.0.0.1:1" }, reason: "FailedDiscoveryCheck", message: "connection refused"},
		"no Service":          {change: func(f *front) { f.service = nil }, reason: "ServiceNotFound", message: `service/extension in "default" is not present`},
		"another port":        {change: func(f *front) { f.service.Spec.Ports[0].Port = 1 }, reason: "ServicePortError", message: `service/extension in "default" is not listening on port 443`},
		"no slices":           {change: func(f *front) { f.slices = nil }, reason: "EndpointsNotFound", message: `cannot find endpointslices for service/extension in "default"`},
		"no endpoint":         {change: func(f *front) { f.slices[0].Endpoints = nil }, reason: "MissingEndpoints", message: `endpointslices for service/extension in "default" have no addresses with port name "https"`},
		"an external Service": {change: func(f *front) { f.service.Spec.Type, f.address = corev1.ServiceTypeExternalName, "" }, reason: "FailedDiscoveryCheck", message: "no endpoints available"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t)
			f.Set([]*apiregistrationv1.APIService{f.apiService(first)})
			f.says(first, "Passed", "")
			require.Equal(t, apidiscoveryv2.DiscoveryFreshnessCurrent, f.Others().Versions[first].Freshness)
			f.backend.Misbehave(test.misbehave)
			f.change(func() {
				if test.change != nil {
					test.change(f)
				}
			})
			f.says(first, test.reason, test.message)
			require.Equal(t, apidiscoveryv2.DiscoveryFreshnessStale, f.Others().Versions[first].Freshness)
			_, err := f.ask(httptest.NewRequest("GET", sails, nil), aggregation.Request{})
			require.ErrorIs(t, err, aggregation.ErrUnavailable)
			require.ErrorContains(t, err, "service unavailable: APIService v1.extension.example.com: "+test.reason)
		})
	}
}

// One that is not who it should be is told nothing.
func TestWhomNotToBelieve(t *testing.T) {
	f := newFront(t)
	stranger := f.apiService(first)
	stranger.Spec.CABundle = newFront(t).backend.CABundle
	broken := f.apiService(second)
	broken.Spec.CABundle = []byte("nonsense")
	f.Set([]*apiregistrationv1.APIService{stranger, broken})
	f.says(first, "FailedDiscoveryCheck", "certificate signed by unknown authority")
	f.says(second, "FailedDiscoveryCheck", "unable to load root certificates")
	insecure := f.apiService(first)
	insecure.Spec.CABundle, insecure.Spec.InsecureSkipTLSVerify = nil, true
	f.Set([]*apiregistrationv1.APIService{insecure})
	f.says(first, "Passed", "")
	other := f.apiService(first)
	other.Spec.Service.Name = "another" // its certificate is for extension.default.svc
	f.Set([]*apiregistrationv1.APIService{other})
	f.says(first, "FailedDiscoveryCheck", "another.default.svc")
}

// A backend that has become well is found to be, without anybody saying so.
func TestItComesBack(t *testing.T) {
	f := newFront(t)
	f.backend.Misbehave(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	f.Set([]*apiregistrationv1.APIService{f.apiService(first)})
	f.says(first, "FailedDiscoveryCheck", "503")
	f.backend.Misbehave(nil)
	f.says(first, "Passed", "")
	// What another server has found counts as well: this one tries.
	f.backend.Misbehave(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	f.change(func() {})
	f.says(first, "FailedDiscoveryCheck", "")
	said := f.apiService(first)
	said.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: "Available", Status: "True", Reason: "Passed"}}
	f.Set([]*apiregistrationv1.APIService{said})
	w, err := f.ask(httptest.NewRequest("GET", sails, nil), aggregation.Request{})
	require.NoError(t, err)
	require.Equal(t, 503, w.Code, "the backend's own answer")
}

func TestRedirectsAreNotPassedOn(t *testing.T) {
	f := newFront(t)
	f.Set([]*apiregistrationv1.APIService{f.apiService(first)})
	f.says(first, "Passed", "")
	f.backend.Misbehave(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere/", http.StatusTemporaryRedirect)
	})
	_, err := f.ask(httptest.NewRequest("GET", sails, nil), aggregation.Request{})
	require.ErrorContains(t, err, "the backend attempted to redirect this request, which is not permitted")
	require.NotErrorIs(t, err, aggregation.ErrUnavailable)
}

// streamed is a server whose every request goes through the Aggregator as one that lasts.
func (f *front) streamed() *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f.Proxy(w, r, first, aggregation.Request{User: aggregation.User{Name: "jane"}, Stream: true}); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	f.t.Cleanup(server.Close)
	return server
}

// Events go on as they come; when the backend ends in the middle of one, the client sees no good end.
func TestWatch(t *testing.T) {
	f := newFront(t)
	f.Set([]*apiregistrationv1.APIService{f.apiService(first)})
	f.says(first, "Passed", "")
	server := f.streamed()
	answer, err := http.Get(server.URL + sails + "?watch=true")
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for i := range 3 {
		f.backend.Events <- fmt.Sprint("event ", i)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("event %d\n", i), line)
	}
	f.backend.CloseClientConnections()
	_, err = lines.ReadString('\n')
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// Any protocol goes through, both ways.
func TestUpgrade(t *testing.T) {
	f := newFront(t)
	f.Set([]*apiregistrationv1.APIService{f.apiService(first)})
	f.says(first, "Passed", "")
	server := f.streamed()
	for _, protocol := range []string{"SPDY/3.1", "websocket"} {
		r, err := http.NewRequest("POST", server.URL+sails+"/a/exec", nil)
		require.NoError(t, err)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", protocol)
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode)
		require.Equal(t, protocol, answer.Header.Get("Upgrade"))
		stream := answer.Body.(io.ReadWriteCloser)
		lines := bufio.NewReader(stream)
		for i := range 3 {
			_, err := fmt.Fprintf(stream, "line %d\n", i)
			require.NoError(t, err)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("echo line %d\n", i), line)
		}
		require.NoError(t, stream.Close())
	}
	for _, seen := range f.backend.Seen() {
		require.Equal(t, []string{"jane"}, seen.Header["X-Remote-User"])
	}
}

// Versions of one server share its connections; what it says it has is in discovery and in the OpenAPI documents.
func TestWhatItHas(t *testing.T) {
	f := newFront(t)
	f.Set([]*apiregistrationv1.APIService{f.apiService(first), f.apiService(second)})
	f.says(first, "Passed", "")
	f.says(second, "Passed", "")
	others := f.Others()
	require.Equal(t, []apidiscoveryv2.APIResourceDiscovery{{
		Resource: "sails", ResponseKind: &metav1.GroupVersionKind{Kind: "Sail"}, Scope: "Namespaced", SingularResource: "sail",
		Verbs: []string{"create", "get", "list", "watch"}, ShortNames: []string{"sl"},
		Subresources: []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "exec", ResponseKind: &metav1.GroupVersionKind{Kind: "Sail"}, Verbs: []string{"get", "create"}}},
	}}, others.Versions[first].Resources)
	require.Same(t, others, f.Others())
	require.Eventually(t, func() bool { return f.V2Version() != "" && len(f.V2()) == 2 }, waitTime, 5*time.Millisecond)
	require.Equal(t, map[string]string{
		"apis/extension.example.com/v1": "/openapi/v3/apis/extension.example.com/v1?hash=1", "apis/extension.example.com/v1beta1": "",
	}, f.V3(), "of its own group versions only")
	document := f.V2()[0]
	require.Contains(t, document.Paths.Paths, "/apis/extension.example.com/v1/sails")
	require.NotContains(t, document.Paths.Paths, "/apis/apps/v1/deployments")
}

// A group version of the registration itself leads nowhere else.
func TestNobodyElseRegisters(t *testing.T) {
	f := newFront(t)
	gv := schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}
	f.Set([]*apiregistrationv1.APIService{f.apiService(gv)})
	require.True(t, f.Empty())
	require.False(t, f.Serves(gv))
}

// Nothing is left of APIServices that come and go.
func TestNothingIsLeft(t *testing.T) {
	f := newFront(t)
	f.Set([]*apiregistrationv1.APIService{f.apiService(first)})
	f.says(first, "Passed", "")
	before := runtime.NumGoroutine()
	for round := range 2 {
		var many []*apiregistrationv1.APIService
		for i := range 200 {
			one := f.apiService(schema.GroupVersion{Group: fmt.Sprintf("g%d-%d.example.com", round, i), Version: "v1"})
			one.Spec.Service.Name = fmt.Sprint("s", i)
			many = append(many, one)
		}
		f.Set(many)
		require.True(t, f.Serves(schema.GroupVersion{Group: fmt.Sprintf("g%d-0.example.com", round), Version: "v1"}))
	}
	f.Set(nil)
	require.True(t, f.Empty())
	require.Empty(t, f.Others().Versions)
	require.Eventually(t, func() bool {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		return runtime.NumGoroutine() <= before+5
	}, waitTime, 20*time.Millisecond, "goroutines")
}
