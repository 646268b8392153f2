package apiserver

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net"
	"sync"
)

// connection is what the server keeps for the requests of one connection.
type connection struct {
	mu sync.Mutex // guards what follows
	// The certificate that was last asked for, and its fingerprint: to hash it for each request was a twentieth of a get.
	certificate *x509.Certificate
	fingerprint string
}

type connectionKey struct{}

// withConnection is http.Server.ConnContext.
func withConnection(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

// fingerprint is the SHA-256 of a certificate that the connection of a request has shown.
func fingerprint(ctx context.Context, certificate *x509.Certificate) string {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok { // handlers without a server, in tests
		c = &connection{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.certificate != certificate {
		sum := sha256.Sum256(certificate.Raw)
		c.certificate, c.fingerprint = certificate, hex.EncodeToString(sum[:])
	}
	return c.fingerprint
}
