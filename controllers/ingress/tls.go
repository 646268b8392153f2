package ingress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

var errNoCertificate = errors.New("no Ingress has a certificate for this name")

// certificates finds the certificate for a client's server name (RFC 6066 section 3) in the Secrets that Ingresses name.
type certificates struct {
	table   func() *table
	secrets corelisters.SecretLister

	mu     sync.Mutex // guards parsed
	parsed map[string]parsedPair
}

// parsedPair is the key pair of a Secret, as long as its content is this and an Ingress names it.
type parsedPair struct {
	certificate, key []byte
	pair             *tls.Certificate
}

func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := c.table().secretOf(hello.ServerName)
	if name == "" {
		return nil, errNoCertificate
	}
	namespace, secretName, _ := strings.Cut(name, "/")
	secret, err := c.secrets.Secrets(namespace).Get(secretName)
	if err != nil || secret.Type != corev1.SecretTypeTLS {
		return nil, fmt.Errorf("%w: there is no Secret %s of type kubernetes.io/tls", errNoCertificate, name)
	}
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.parsed[name]; ok && bytes.Equal(p.certificate, certificate) && bytes.Equal(p.key, key) {
		return p.pair, nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%w: Secret %s: its pair is faulty", errNoCertificate, name) // without quoting it
	}
	c.forgetUnused()
	c.parsed[name] = parsedPair{certificate, key, &pair}
	return &pair, nil
}

// forgetUnused drops the pairs of Secrets that no Ingress names any more. The caller holds mu.
func (c *certificates) forgetUnused() {
	used := map[string]parsedPair{}
	for _, name := range c.table().secrets {
		if p, ok := c.parsed[name]; ok {
			used[name] = p
		}
	}
	c.parsed = used
}
