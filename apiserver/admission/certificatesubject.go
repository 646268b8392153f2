package admission

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// certificateSubject keeps anybody from becoming an administrator whom no role binds, by a client certificate of the
// group that may do everything.
type certificateSubject struct{}

const mastersGroup = "system:masters"

// Validate implements Validator.
func (certificateSubject) Validate(_ context.Context, r *Request) error {
	request, ok := r.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok || !r.writes(signingRequests, false) || request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	parsed, err := parseRequest(request.Spec.Request)
	if err != nil {
		return refused(r, "failed to parse CSR: %w", err)
	}
	if slices.Contains(parsed.Subject.Organization, mastersGroup) {
		return refused(r, "use of %s signer with %s group is not allowed", certificatesv1.KubeAPIServerClientSignerName, mastersGroup)
	}
	return nil
}

func parseRequest(data []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
