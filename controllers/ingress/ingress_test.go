package ingress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// path is one of an Ingress, such as "Prefix /a service".
func path(text string) networkingv1.HTTPIngressPath {
	words := strings.Fields(text)
	return networkingv1.HTTPIngressPath{
		Path: words[1], PathType: ptr.To(networkingv1.PathType(words[0])),
		Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: words[2], Port: networkingv1.ServiceBackendPort{Name: "web"}}},
	}
}

// site is an Ingress of our class with a host.
func site(name, host string, paths ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: metav1.Unix(1, 0)},
		Spec:       networkingv1.IngressSpec{IngressClassName: ptr.To(ClassName)},
	}
	http := &networkingv1.HTTPIngressRuleValue{}
	for _, p := range paths {
		http.Paths = append(http.Paths, path(p))
	}
	i.Spec.Rules = []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: http}}}
	return i
}

// TestRules: hosts and paths as the documentation of Ingress has them.
func TestRules(t *testing.T) {
	younger := site("younger", "foo.example", "Prefix /a/b stolen")
	younger.CreationTimestamp = metav1.Unix(2, 0)
	whole := site("whole", "", "Prefix /everywhere all")
	tables := newTable([]*networkingv1.Ingress{
		younger, whole,
		site("foo", "foo.example", "Prefix /a a", "Exact /a exact", "Prefix /a/b/ ab", "ImplementationSpecific /c c"),
		site("wild", "*.example", "Prefix / wild"),
	})
	for request, want := range map[string]string{
		"foo.example/a": "exact", "foo.example/a/": "a", "foo.example/a/x": "a", "foo.example/ab": "", "foo.example/a/b": "ab",
		"FOO.example/a/b/c": "ab", "foo.example/c/d": "c", "foo.example/": "", "foo.example/everywhere": "",
		"bar.example/x": "wild", "a.b.example/": "", "example/": "", "other.org/everywhere/x": "all", "other.org/": "",
	} {
		host, rest, _ := strings.Cut(request, "/")
		got := ""
		if r := tables.find(host, "/"+rest); r != nil {
			got = r.backend.service
		}
		require.Equal(t, want, got, request)
	}
	fallback := site("default", "x.example")
	fallback.Spec.DefaultBackend = ptr.To(path("Prefix / default").Backend)
	require.Equal(t, "default", newTable([]*networkingv1.Ingress{fallback}).find("nobody", "/").backend.service)
}

func TestClasses(t *testing.T) {
	i := site("a", "a")
	require.True(t, ours(i, map[string]bool{"kontiki": true}))
	require.False(t, ours(i, map[string]bool{"kontiki": false}), "a class of that name of another controller")
	i.Spec.IngressClassName = nil
	require.False(t, ours(i, nil))
	i.Annotations = map[string]string{legacyClassAnnotation: "kontiki"}
	require.True(t, ours(i, nil))
}

// served is a server with Services behind it.
type served struct {
	t           *testing.T
	api         kubernetes.Interface
	http, https string // where it listens
}

func serve(t *testing.T) *served {
	s := &served{t: t, api: fake.NewClientset()}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return l
	}
	plain, secure := listen(), listen()
	s.http, s.https = plain.Addr().String(), secure.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- newServer(Config{HTTP: plain, HTTPS: secure, Log: slog.New(slog.DiscardHandler)}, s.api).run(ctx)
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return s
}

// service makes a Service whose port "web" is at the addresses.
func (s *served) service(name string, addresses ...string) {
	_, err := s.api.CoreV1().Services("ns").Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	for i, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		require.NoError(s.t, err)
		var number int32
		_, err = fmt.Sscan(port, &number)
		require.NoError(s.t, err)
		_, err = s.api.DiscoveryV1().EndpointSlices("ns").Create(s.t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprint(name, i), Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("web"), Port: &number}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{host}}},
		}, metav1.CreateOptions{})
		require.NoError(s.t, err)
	}
}

func (s *served) ingress(i *networkingv1.Ingress) {
	_, err := s.api.NetworkingV1().Ingresses("ns").Create(s.t.Context(), i, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// request sends one, with the client's own idea of X-Forwarded-For.
func (s *served) request(method, host, path, body string) (int, string, http.Header) {
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.http+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Host = host
	r.Header.Set("X-Forwarded-For", "198.51.100.66")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, string(b), response.Header
}

// eventually waits until a GET has the status.
func (s *served) eventually(host, path string, status int) {
	s.t.Helper()
	got := 0
	require.Eventually(s.t, func() bool {
		got, _, _ = s.request("GET", host, path, "")
		return got == status
	}, time.Minute, 10*time.Millisecond, "%s%s is not answered with %d", host, path, status)
}

// mirror answers with what it was asked.
func mirror(t *testing.T) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s for=%s host=%s proto=%s body=%s", r.Method, r.Host, r.URL, r.Header.Get("X-Forwarded-For"),
			r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Proto"), b)
	}))
	t.Cleanup(h.Close)
	return strings.TrimPrefix(h.URL, "http://")
}

// refusing is an address where nobody listens.
func refusing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// TestRequests: what reaches a pod, and what is answered without one.
func TestRequests(t *testing.T) {
	s := serve(t)
	s.service("good", refusing(t), mirror(t), refusing(t))
	s.service("none")
	s.service("down", refusing(t))
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { broken.Close() })
	go func() {
		for {
			conn, err := broken.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	s.service("broken", broken.Addr().String())
	s.ingress(site("a", "shop.example", "Prefix / good", "Prefix /none none", "Prefix /down down", "Prefix /broken broken", "Prefix /missing missing"))
	s.eventually("shop.example", "/", 200)
	for range 20 { // whichever endpoint is dialled first; the body is there for the one that answers
		status, body, _ := s.request("POST", "shop.example:8080", "/buy?x=1", "goods")
		require.Equal(t, 200, status)
		require.Equal(t, "POST shop.example:8080/buy?x=1 for=127.0.0.1 host=shop.example:8080 proto=http body=goods", body)
	}
	for path, want := range map[string]int{"/none": 503, "/missing": 503, "/down": 502, "/broken": 502, "/a/../none": 400, "/%2e%2e/none": 400} {
		status, body, _ := s.request("GET", "shop.example", path, "")
		require.Equal(t, want, status, path)
		require.Equal(t, http.StatusText(want)+"\n", body)
	}
	status, _, _ := s.request("GET", "other.example", "/", "")
	require.Equal(t, 404, status)

	// A header that is too large is refused.
	conn, err := net.Dial("tcp", s.http)
	require.NoError(t, err)
	defer conn.Close()
	go func() {
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: shop.example\r\nX: %s\r\n\r\n", strings.Repeat("x", 100<<10))
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 431, response.StatusCode)
}

// TestUpgrades: a WebSocket is a pipe in both directions once it is open.
func TestUpgrades(t *testing.T) {
	s := serve(t)
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			return
		}
		conn, stream, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, stream)
	}))
	t.Cleanup(pod.Close)
	s.service("chat", strings.TrimPrefix(pod.URL, "http://"))
	s.ingress(site("a", "chat.example", "Prefix / chat"))
	s.eventually("chat.example", "/", 200)
	conn, err := net.Dial("tcp", s.http)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: chat.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	require.Equal(t, 101, response.StatusCode)
	frame := bytes.Repeat([]byte{0x82, 0x01, 0xff}, 1000)
	_, err = conn.Write(frame)
	require.NoError(t, err)
	got := make([]byte, len(frame))
	_, err = io.ReadFull(reader, got)
	require.NoError(t, err)
	require.Equal(t, frame, got)
}

// pair makes a self-signed certificate for a name.
func pair(t *testing.T, name string) map[string][]byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}),
	}
}

// TestCertificates: each name has its own; one that is replaced is used at once; plain HTTP is led to HTTPS.
func TestCertificates(t *testing.T) {
	s := serve(t)
	s.service("good", mirror(t))
	for host, secret := range map[string]string{"a.example": "one", "*.wild.example": "two"} {
		i := site(secret, host, "Prefix / good")
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: secret}}
		s.ingress(i)
		_, err := s.api.CoreV1().Secrets("ns").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: "ns"}, Type: corev1.SecretTypeTLS, Data: pair(t, host),
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s.eventually("a.example", "/x?y=z", 308)
	_, _, header := s.request("GET", "a.example", "/x?y=z", "")
	_, port, err := net.SplitHostPort(s.https)
	require.NoError(t, err)
	require.Equal(t, "https://a.example:"+port+"/x?y=z", header.Get("Location"))

	get := func(name string, trusted []byte) (string, error) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(trusted)
		client := &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, s.https)
			},
		}}
		response, err := client.Get("https://" + name + "/secure")
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		b, err := io.ReadAll(response.Body)
		return response.Proto + " " + string(b), err
	}
	certificateOf := func(secret string) []byte {
		got, err := s.api.CoreV1().Secrets("ns").Get(t.Context(), secret, metav1.GetOptions{})
		require.NoError(t, err)
		return got.Data["tls.crt"]
	}
	body, err := get("a.example", certificateOf("one"))
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0 GET a.example/secure for=127.0.0.1 host=a.example proto=https body=", body)
	_, err = get("b.wild.example", certificateOf("two"))
	require.NoError(t, err)
	_, err = get("unknown.example", certificateOf("two"))
	require.Error(t, err)

	renewed := pair(t, "a.example")
	_, err = s.api.CoreV1().Secrets("ns").Update(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "ns"}, Type: corev1.SecretTypeTLS, Data: renewed,
	}, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := get("a.example", renewed["tls.crt"])
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// TestRights: the rights of kontiki:ingress are enough for all that is done with them, and status and class are written.
func TestRights(t *testing.T) {
	c := testcluster.Start(t)
	admin := c.Admin()
	_, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{NodeLabel: "true"}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c.Go("ingress", func(ctx context.Context) error {
		return Run(ctx, Config{REST: c.REST(pki.Ingress), HTTP: plain, HTTPS: secure, Default: true, LeaderElect: true, Identity: "s1", Log: c.Log})
	})
	require.Eventually(t, func() bool {
		class, err := admin.NetworkingV1().IngressClasses().Get(t.Context(), ClassName, metav1.GetOptions{})
		return err == nil && class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
	}, time.Minute, 10*time.Millisecond)
	i := site("a", "a.example", "Prefix / good")
	i.Namespace = "default"
	_, err = admin.NetworkingV1().Ingresses("default").Create(t.Context(), i, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got, err := admin.NetworkingV1().Ingresses("default").Get(t.Context(), "a", metav1.GetOptions{})
		return err == nil && len(got.Status.LoadBalancer.Ingress) == 1 && got.Status.LoadBalancer.Ingress[0].IP == "192.0.2.7"
	}, time.Minute, 10*time.Millisecond)
}
