package admission

import (
	"bytes"
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// certificateSigning lets those issue a certificate who may "sign" for its signer.
type certificateSigning struct{ cluster Cluster }

// Validate implements Validator.
func (c certificateSigning) Validate(ctx context.Context, r *Request) error {
	old, ok := r.Old.(*certificatesv1.CertificateSigningRequest)
	request, too := r.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok || !too || r.Subresource != "status" {
		return nil
	}
	if bytes.Equal(old.Status.Certificate, request.Status.Certificate) && equality.Semantic.DeepEqual(old.Status.Conditions, request.Status.Conditions) {
		return nil
	}
	if !mayForSigner(ctx, c.cluster, r, "sign", old.Spec.SignerName) {
		return refused(r, "user not permitted to sign requests with signerName %q", old.Spec.SignerName)
	}
	return nil
}
