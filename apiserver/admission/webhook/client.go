package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxAnswerBytes bounds the answer of a hook: a patch may rewrite the largest object there is, in base64.
const maxAnswerBytes = 8 << 20

// How many connections to one endpoint lie idle, and how long.
const (
	idleConnections = 16
	idleTimeout     = 90 * time.Second
)

// endpointFunc finds an endpoint of a Service, as in Config.
type endpointFunc = func(ctx context.Context, namespace, service string, port int32) (string, error)

// client talks to one place.
type client struct {
	url       string
	http      *http.Client
	transport *http.Transport
	broken    error // why there is no way to talk to it
}

// newClient makes a client, and no connection yet. A hook behind a Service is known by the name of the Service, whichever
// of its endpoints answers.
func newClient(place *admissionv1.WebhookClientConfig, endpoint endpointFunc) *client {
	c := &client{transport: &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTimeout, TLSHandshakeTimeout: defaultTimeout,
	}}
	if len(place.CABundle) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(place.CABundle) {
			c.broken = errors.New("unable to load root certificates: the caBundle has no PEM certificate")
		}
		c.transport.TLSClientConfig.RootCAs = roots
	}
	way := http.RoundTripper(c.transport)
	switch {
	case place.Service != nil:
		s := serviceOf(place.Service)
		c.url = "https://" + s.host() + s.path
		c.transport.TLSClientConfig.ServerName = s.serverName()
		way = &serviceTransport{service: s, endpoint: endpoint, next: c.transport}
	case place.URL != nil:
		c.url = *place.URL
	default:
		c.broken = errors.New("webhook configuration must have either service or URL")
	}
	c.http = &http.Client{Transport: way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

func (c *client) close() { c.transport.CloseIdleConnections() }

// ask sends a review and returns the answer. The hook is told how long it has, in whole seconds.
func (c *client) ask(ctx context.Context, review []byte) ([]byte, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if deadline, ok := ctx.Deadline(); ok {
		left := max(time.Until(deadline), 0)
		seconds := (left + time.Second - 1) / time.Second
		r.URL.RawQuery = url.Values{"timeout": {strconv.Itoa(int(seconds)) + "s"}}.Encode()
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return readAnswer(response)
}

func readAnswer(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnswerBytes {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswerBytes)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		text := "unknown"
		if strings.HasPrefix(response.Header.Get("Content-Type"), "text/") {
			text = strings.TrimSpace(string(body[:min(len(body), maxErrorText)]))
		}
		return nil, apierrors.NewGenericServerResponse(response.StatusCode, http.MethodPost, schema.GroupResource{}, "", text, 0, true)
	}
	return body, nil
}

// maxErrorText bounds what an error quotes of a failed hook's answer.
const maxErrorText = 2048

// service is a port of a Service.
type service struct {
	namespace, name, path string
	port                  int32
}

func serviceOf(s *admissionv1.ServiceReference) service {
	out := service{namespace: s.Namespace, name: s.Name, path: "/", port: 443}
	if s.Port != nil {
		out.port = *s.Port
	}
	if s.Path != nil {
		out.path = "/" + strings.TrimPrefix(*s.Path, "/")
	}
	return out
}

func (s service) serverName() string { return s.name + "." + s.namespace + ".svc" }

func (s service) host() string { return net.JoinHostPort(s.serverName(), strconv.Itoa(int(s.port))) }

// serviceTransport sends each request to one of a Service's endpoints. Connections are kept by endpoint, so that none is
// used after its endpoint has gone.
type serviceTransport struct {
	service  service
	endpoint endpointFunc
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *serviceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	address, err := t.endpoint(r.Context(), t.service.namespace, t.service.name, t.service.port)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.Host, out.URL.Host = r.URL.Host, address
	return t.next.RoundTrip(out)
}
