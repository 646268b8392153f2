package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/joining"
	"kontiki/internal/pki"
)

// lookEvery is how often Keep looks whom the API server trusts, and whether a certificate is due: see pki.Keep.
const lookEvery = 20 * time.Second

// Keep follows the cluster's authority and renews the node's certificates, until ctx ends.
func (m *Manager) Keep(ctx context.Context) error {
	client, err := clientOf(m.config.Servers, m.Client, "")
	if err != nil {
		return err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for failing := false; ; {
		err := m.look(ctx, client)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing { // once, not every time
			m.config.Log.Warn("certificates cannot be kept up to date, those in use stay", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look does what is to be done now. Whom to trust comes first: what is issued then is of the authority that signs now.
func (m *Manager) look(ctx context.Context, client kubernetes.Interface) error {
	return errors.Join(m.followAuthorities(ctx), m.renewClient(ctx, client), m.renewServing(ctx, client))
}

// followAuthorities trusts those whom the API server trusts, which it has proved to be by one that was trusted before.
func (m *Manager) followAuthorities(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s := *m.current.Load()
	shown, err := joining.Authorities(ctx, m.config.Servers.Current(), s.clientTLS, s.trusted)
	if err != nil {
		return err
	}
	fresh := pki.EncodeCertificates(shown)
	if len(shown) == 0 || bytes.Equal(fresh, pki.EncodeCertificates(s.trusted)) {
		return nil
	}
	if err := pki.WriteFile(m.path(caFile), fresh); err != nil {
		return err
	}
	s.trusted = shown
	m.use(&s)
	m.config.Log.Info("the cluster's authorities have changed", "count", len(shown))
	return m.writeKubeconfig(&s)
}

func (m *Manager) renewClient(ctx context.Context, client kubernetes.Interface) error {
	s := *m.current.Load()
	if !m.due(s.client, s.trusted) {
		return nil
	}
	key, chain, err := m.request(ctx, client, certificatesv1.KubeAPIServerClientKubeletSignerName)
	if err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	if err := pki.WriteCombined(m.path(clientFile), key, chain); err != nil {
		return err
	}
	if s.client, err = pki.ReadCombined(m.path(clientFile)); err != nil {
		return err
	}
	m.use(&s)
	m.config.Log.Info("client certificate renewed", "expires", s.client.Leaf().NotAfter)
	return m.writeKubeconfig(&s)
}

func (m *Manager) renewServing(ctx context.Context, client kubernetes.Interface) error {
	s := *m.current.Load()
	if s.serving != nil && !m.due(s.serving, s.trusted) && m.isForThisNode(s.serving.Leaf()) {
		return nil
	}
	key, chain, err := m.request(ctx, client, certificatesv1.KubeletServingSignerName)
	if err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	if err := pki.WriteCombined(m.path(servingFile), key, chain); err != nil {
		return err
	}
	if s.serving, err = pki.ReadCombined(m.path(servingFile)); err != nil {
		return err
	}
	m.use(&s)
	m.config.Log.Info("serving certificate renewed", "expires", s.serving.Leaf().NotAfter)
	return nil
}

// due says whether a certificate is to be replaced: in the last third of its life, when nobody that is trusted vouches for
// it, and during a rotation when it is not of the authority that signs now.
func (m *Manager) due(pair *pki.KeyPair, trusted []*x509.Certificate) bool {
	if !m.config.Now().Before(pki.RenewAt(pair.Leaf())) {
		return true
	}
	if len(trusted) > 1 && pair.Leaf().CheckSignatureFrom(trusted[0]) != nil {
		return true
	}
	return pair.VerifiedBy(trusted, m.config.Now()) != nil
}

// isForThisNode says whether a serving certificate has all of the node's addresses: they may have changed.
func (m *Manager) isForThisNode(leaf *x509.Certificate) bool {
	return !slices.ContainsFunc(m.config.NodeIPs, func(ip net.IP) bool { return !slices.ContainsFunc(leaf.IPAddresses, ip.Equal) })
}
