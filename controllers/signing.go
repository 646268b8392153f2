package controllers

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
)

// CertificateSigner signs certificates with the cluster's authority (internal/pki).
type CertificateSigner interface {
	// Sign returns the certificate in PEM, with what it takes to verify it.
	Sign(template *x509.Certificate, public any, life time.Duration) ([]byte, error)
	// CertificateLife is the longest life of what is signed.
	CertificateLife() time.Duration
}

// shortestLife is what Kubernetes gives at least.
const shortestLife = 10 * time.Minute

// csrSigning signs the approved requests of Kubernetes' own signers, each of which says what may be asked of it (Kubernetes'
// documentation, "Certificates and Certificate Signing Requests"). A request that asks for something else fails for good.
type csrSigning struct {
	client   kubernetes.Interface
	requests certificateslisters.CertificateSigningRequestLister
	signer   CertificateSigner
}

func addCSRSigning(m *manager) error {
	if m.config.Signer == nil {
		return nil
	}
	client, err := m.client("certificate")
	if err != nil {
		return err
	}
	requests := m.shared.Certificates().V1().CertificateSigningRequests()
	c := m.add("csr-signing", 2, &csrSigning{client: client, requests: requests.Lister(), signer: m.config.Signer})
	watch(c, requests.Informer(), requestFor[*certificatesv1.CertificateSigningRequest])
	return nil
}

func (s *csrSigning) Reconcile(ctx context.Context, req Request) (Result, error) {
	csr, err := s.requests.Get(req.Name)
	if err != nil {
		return Result{}, ignoreNotFound(err)
	}
	check, ours := signers[csr.Spec.SignerName]
	if !ours || !hasCondition(csr, certificatesv1.CertificateApproved) || hasCondition(csr, certificatesv1.CertificateFailed) || len(csr.Status.Certificate) > 0 {
		return Result{}, nil
	}
	signed := csr.DeepCopy()
	signed.Status.Certificate, err = s.sign(csr, check)
	if errors.Is(err, ErrNotSignable) {
		signed.Status.Conditions = append(signed.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: err.Error(),
		})
	} else if err != nil {
		return Result{}, err
	}
	_, err = s.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, signed, metav1.UpdateOptions{})
	return Result{}, ignoreNotFound(err)
}

func (s *csrSigning) sign(csr *certificatesv1.CertificateSigningRequest, check func(*x509.CertificateRequest, usageSet) error) ([]byte, error) {
	request, err := parseSigningRequest(csr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSignable, err)
	}
	usages := usagesOf(csr)
	if err := check(request, usages); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSignable, err)
	}
	template := &x509.Certificate{
		Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		EmailAddresses: request.EmailAddresses, URIs: request.URIs, BasicConstraintsValid: true,
	}
	if template.KeyUsage, template.ExtKeyUsage, err = usages.x509(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSignable, err)
	}
	life := s.signer.CertificateLife()
	if asked := csr.Spec.ExpirationSeconds; asked != nil {
		life = min(life, max(shortestLife, time.Duration(*asked)*time.Second))
	}
	return s.signer.Sign(template, request.PublicKey, life)
}

func parseSigningRequest(csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return request, request.CheckSignature()
}

func hasCondition(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	for _, c := range csr.Status.Conditions {
		if c.Type == kind {
			return true
		}
	}
	return false
}
