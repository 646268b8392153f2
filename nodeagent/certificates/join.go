package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/internal/apiclient"
	"kontiki/internal/joining"
	"kontiki/internal/livetls"
	"kontiki/internal/pki"
)

// A server may be starting when its agents are: they ask again for a while.
const (
	joinPatience = 2 * time.Minute
	joinRetry    = 2 * time.Second
)

// join gets the first certificate, and writes it and whom to trust to disk.
func (m *Manager) join(ctx context.Context) (*state, error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	for {
		s, err := m.joinOnce(ctx)
		if err == nil || !unreachable(err) {
			return s, err
		}
		m.config.Log.Warn("cannot join yet, will try again", "servers", m.config.Servers.List(), "err", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(joinRetry):
		}
	}
}

// unreachable says whether an error may be gone in a moment, whatever else is right or wrong.
func unreachable(err error) bool {
	if errors.Is(err, joining.ErrOtherCluster) || errors.Is(err, joining.ErrImpostor) {
		return false
	}
	return errors.As(err, new(*net.OpError)) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

func (m *Manager) joinOnce(ctx context.Context) (*state, error) {
	token := m.config.Token
	trusted, err := m.trust(ctx, token.CAHash)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, c := range trusted {
		roots.AddCert(c)
	}
	client, err := clientOf(m.config.Servers, livetls.Static(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Time: m.config.Now}), token.Token.Bearer())
	if err != nil {
		return nil, err
	}
	key, chain, err := m.request(ctx, client, certificatesv1.KubeAPIServerClientKubeletSignerName)
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		var status apierrors.APIStatus
		errors.As(err, &status)
		return nil, fmt.Errorf("%w %s: %s", joining.ErrRefused, token.Token.ID, joining.Reason(int(status.Status().Code), status.Status().Message))
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(m.config.Dir, 0o700); err != nil {
		return nil, err
	}
	// What an earlier node of this directory served with is of no use, client.pem comes last: it is what
	// says that the node has joined.
	_ = os.Remove(m.path(servingFile))
	if err := pki.WriteFile(m.path(caFile), pki.EncodeCertificates(trusted)); err != nil {
		return nil, err
	}
	if err := pki.WriteCombined(m.path(clientFile), key, chain); err != nil {
		return nil, err
	}
	m.config.Log.Info("joined the cluster", "server", m.config.Servers.Current(), "node", m.config.NodeName)
	return m.read()
}

// trust learns the cluster's authorities from the first server that can be reached.
func (m *Manager) trust(ctx context.Context, hash string) (trusted []*x509.Certificate, err error) {
	for _, server := range m.config.Servers.List() {
		if trusted, err = joining.Trust(ctx, server, hash, m.config.Now()); err == nil || !unreachable(err) {
			break
		}
	}
	return trusted, err
}

// clientOf calls the API servers with what source says, and a token if there is one.
func clientOf(servers *apiclient.Servers, source livetls.Source, bearer string) (kubernetes.Interface, error) {
	config := apiclient.Config(servers.Live(source), "agent/kontiki")
	config.BearerToken = bearer
	config.Timeout = requestTimeout
	return kubernetes.NewForConfig(rest.CopyConfig(config))
}
