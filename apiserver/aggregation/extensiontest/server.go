package extensiontest

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Service and Namespace are what the server's certificate is for.
const (
	Service   = "extension"
	Namespace = "default"
)

// Group is that of the server's one resource, sails; it has the versions v1 and v1beta1.
const Group = "extension.example.com"

// Server is a running one. It ends with its test.
type Server struct {
	*httptest.Server
	CABundle []byte      // who has signed its certificate, in PEM
	Events   chan string // lines for those who watch

	misbehave atomic.Pointer[http.HandlerFunc]
	mu        sync.Mutex // guards seen
	seen      []Seen
}

// Seen is a request that came from a front proxy.
type Seen struct {
	Method, URI, Proxy string // Proxy is the name in the client's certificate
	Header             http.Header
}

// Start starts a server on an address, port 0, that believes certificates of an authority (PEM).
func Start(t testing.TB, address string, frontProxyCA []byte) *Server {
	t.Helper()
	s := &Server{Events: make(chan string, 100)}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	require.NoError(t, err)
	clients := x509.NewCertPool()
	require.True(t, clients.AppendCertsFromPEM(frontProxyCA))
	var certificate tls.Certificate
	certificate, s.CABundle = Certificate(t)
	s.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Misbehave has every request answered by handler; nil ends that.
func (s *Server) Misbehave(handler http.HandlerFunc) {
	if handler == nil {
		s.misbehave.Store(nil)
		return
	}
	s.misbehave.Store(&handler)
}

// Seen returns the requests for resources since the last time; checks are not among them.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	s.seen = nil
	return out
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handler := s.misbehave.Load(); handler != nil {
		(*handler)(w, r)
		return
	}
	if len(r.TLS.VerifiedChains) == 0 || r.Header.Get("X-Remote-User") == "" {
		http.Error(w, "who says so?", http.StatusUnauthorized)
		return
	}
	base := "/apis/" + Group + "/"
	path, resource := strings.CutPrefix(r.URL.Path, base)
	version, rest, _ := strings.Cut(path, "/")
	switch {
	case r.URL.Path == "/openapi/v2":
		_, _ = io.WriteString(w, openAPIv2)
	case r.URL.Path == "/openapi/v3":
		fmt.Fprintf(w, `{"paths":{"apis/%[1]s/v1":{"serverRelativeURL":"/openapi/v3/apis/%[1]s/v1?hash=1"},"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=lie"}}}`, Group)
	case r.URL.Path == "/openapi/v3/apis/"+Group+"/v1":
		_, _ = io.WriteString(w, `{"openapi":"3.0.0","info":{"title":"extension"}}`)
	case !resource || version != "v1" && version != "v1beta1":
		http.NotFound(w, r)
	case rest == "":
		fmt.Fprintf(w, resources, Group, version)
	default:
		s.note(r)
		s.serveResource(w, r, rest)
	}
}

func (s *Server) note(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, Seen{
		Method: r.Method, URI: r.RequestURI, Proxy: r.TLS.VerifiedChains[0][0].Subject.CommonName, Header: r.Header.Clone(),
	})
}

func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, rest string) {
	switch {
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case strings.HasSuffix(rest, "/exec"):
		echo(w, r)
	case r.Method == http.MethodPost:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"SailList","apiVersion":"`+Group+`/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}

// watch sends events as they come until the client has gone.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line := <-s.Events:
			_, _ = io.WriteString(w, line+"\n")
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// echo takes the protocol that is asked for and sends back, line by line, what it gets.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	for lines := bufio.NewScanner(buffered); lines.Scan(); {
		fmt.Fprintf(conn, "echo %s\n", lines.Text())
	}
}

const resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/%s","resources":[
{"name":"sails","singularName":"sail","namespaced":true,"kind":"Sail","verbs":["create","get","list","watch"],"shortNames":["sl"]},
{"name":"sails/exec","singularName":"","namespaced":true,"kind":"Sail","verbs":["get","create"]},
{"name":"nothing/status","singularName":"","namespaced":true,"kind":"Nothing","verbs":["get"]}]}`

// openAPIv2 has a path and a definition that this server has too, and others.
const openAPIv2 = `{"swagger":"2.0","info":{"title":"extension","version":"1"},"paths":{
"/apis/` + Group + `/v1/sails":{"get":{"operationId":"listSails","responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/com.example.SailList"}}}}},
"/apis/apps/v1/deployments":{"get":{"operationId":"stolen","responses":{"200":{"description":"mine now"}}}}},
"definitions":{"com.example.SailList":{"type":"object","properties":{"metadata":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}}},
"io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta":{"type":"object","description":"another one"}}}`

// Certificate makes an authority (PEM) and a certificate of it for the Service.
func Certificate(t testing.TB) (certificate tls.Certificate, ca []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		}
	}
	root := template("extension-ca")
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
	rootBytes, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	require.NoError(t, err)
	leaf := template("extension")
	leaf.DNSNames, leaf.KeyUsage = []string{Service + "." + Namespace + ".svc"}, x509.KeyUsageDigitalSignature
	leafBytes, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{leafBytes}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootBytes})
}
