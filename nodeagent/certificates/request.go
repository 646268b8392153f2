package certificates

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/joining"
)

const (
	// requestTimeout bounds one call of the API server.
	requestTimeout = 10 * time.Second
	// decisionPatience is how long a request may wait for its certificate. Its next try is another request.
	decisionPatience = time.Minute
)

// pollDecision is how often a request is looked at: soon at first, since a controller decides within milliseconds.
var pollDecision = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 100, Cap: 2 * time.Second}

// request makes a key and asks one of Kubernetes' signers for a certificate.
func (m *Manager) request(ctx context.Context, client kubernetes.Interface, signer string) (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + m.config.NodeName, Organization: []string{"system:nodes"}}}
	usage := certificatesv1.UsageClientAuth
	if signer == certificatesv1.KubeletServingSignerName {
		template.DNSNames, template.IPAddresses = []string{m.config.NodeName}, m.config.NodeIPs
		usage = certificatesv1.UsageServerAuth
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, nil, err
	}
	made, err := client.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, err
	}
	chain, err := m.awaitDecision(ctx, client, made.Name)
	return key, chain, err
}

// awaitDecision waits until a request has its certificate. Where it has to wait for people, the log says so at once.
func (m *Manager) awaitDecision(ctx context.Context, client kubernetes.Interface, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, decisionPatience)
	defer cancel()
	backoff, reason := pollDecision, ""
	for {
		csr, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && len(csr.Status.Certificate) > 0:
			return csr.Status.Certificate, nil
		case err == nil:
			if err := turnedDown(csr); err != nil {
				return nil, err
			}
			if why := leftToPeople(csr); why != reason {
				reason = why
				m.config.Log.Warn("certificate waits until somebody approves it", "command", "kubectl certificate approve "+name, "reason", reason)
			}
		case ctx.Err() == nil:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w %s: `kubectl certificate approve %s` does", ErrUndecided, name, name)
		case <-time.After(backoff.Step()):
		}
	}
}

// leftToPeople is why no controller approves a request, "" if none has said so.
func leftToPeople(csr *certificatesv1.CertificateSigningRequest) string {
	for _, c := range csr.Status.Conditions {
		if c.Type == joining.LeftToPeople {
			return c.Message
		}
	}
	return ""
}

func turnedDown(csr *certificatesv1.CertificateSigningRequest) error {
	for _, c := range csr.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed) {
			return fmt.Errorf("%w: %s: %s", ErrDenied, csr.Name, c.Message)
		}
	}
	return nil
}
