package admission

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
)

func signing(signer string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: named("r"), Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer}}
}

func TestCertificateApproval(t *testing.T) {
	c := &cluster{}
	p := certificateApproval{c}
	renamed := signing("example.com/other")
	approve := write(renamed, signing("example.com/s"), "approval")
	forbidden(t, p.Validate(t.Context(), approve), `user not permitted to approve requests with signerName "example.com/s"`)
	c.allowed = []string{"jane approve signers example.com/other"}
	forbidden(t, p.Validate(t.Context(), approve), "not permitted")
	for _, rule := range []string{"jane approve signers example.com/s", "jane approve signers example.com/*"} {
		c.allowed = []string{rule}
		require.NoError(t, p.Validate(t.Context(), approve))
	}
	c.allowed = nil
	require.NoError(t, p.Validate(t.Context(), write(renamed, signing("example.com/s"), "")))
}

func TestCertificateSigning(t *testing.T) {
	c := &cluster{}
	p := certificateSigning{c}
	issued := signing("example.com/s")
	issued.Status.Certificate = []byte("certificate")
	failed := signing("example.com/s")
	failed.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed}}
	for _, now := range []*certificatesv1.CertificateSigningRequest{issued, failed} {
		c.allowed = []string{"jane approve signers example.com/s"}
		forbidden(t, p.Validate(t.Context(), write(now, signing("example.com/s"), "status")), `user not permitted to sign requests with signerName "example.com/s"`)
		c.allowed = []string{"jane sign signers example.com/s"}
		require.NoError(t, p.Validate(t.Context(), write(now, signing("example.com/s"), "status")))
	}
	c.allowed = nil
	require.NoError(t, p.Validate(t.Context(), write(issued, issued, "status")), "nothing is issued")
}

func TestCertificateSubject(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	request := func(signer string, groups ...string) *certificatesv1.CertificateSigningRequest {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane", Organization: groups}}, key)
		require.NoError(t, err)
		r := signing(signer)
		r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		return r
	}
	const signer = certificatesv1.KubeAPIServerClientSignerName
	p := certificateSubject{}
	require.NoError(t, p.Validate(t.Context(), write(request(signer, "people"), nil, "")))
	require.NoError(t, p.Validate(t.Context(), write(request("example.com/s", "system:masters"), nil, "")), "whose certificates mean nothing here")
	forbidden(t, p.Validate(t.Context(), write(request(signer, "people", "system:masters"), nil, "")),
		"use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed")
	broken := signing(signer)
	broken.Spec.Request = []byte("-----BEGIN CERTIFICATE-----")
	forbidden(t, p.Validate(t.Context(), write(broken, nil, "")), "failed to parse CSR")
}

func TestTrustBundleAttest(t *testing.T) {
	bundle := func(signer, anchors string) *certificatesv1beta1.ClusterTrustBundle {
		return &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: named("b"), Spec: certificatesv1beta1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: anchors}}
	}
	c := &cluster{}
	p := trustBundleAttest{c}
	require.NoError(t, p.Validate(t.Context(), write(bundle("", "a"), nil, "")))
	forbidden(t, p.Validate(t.Context(), write(bundle("example.com/s", "a"), nil, "")), `user not permitted to attest for signerName "example.com/s"`)
	forbidden(t, p.Validate(t.Context(), write(bundle("example.com/s", "b"), bundle("example.com/s", "a"), "")), "attest")
	require.NoError(t, p.Validate(t.Context(), write(bundle("example.com/s", "a"), bundle("example.com/s", "a"), "")))
	c.allowed = []string{"jane attest signers example.com/*"}
	require.NoError(t, p.Validate(t.Context(), write(bundle("example.com/s", "a"), nil, "")))
}
