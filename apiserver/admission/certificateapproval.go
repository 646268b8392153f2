package admission

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
)

// certificateApproval lets those approve a certificate who may "approve" for its signer, beside being allowed to write
// approvals at all.
type certificateApproval struct{ cluster Cluster }

var signingRequests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")

// Validate implements Validator.
func (c certificateApproval) Validate(ctx context.Context, r *Request) error {
	old, ok := r.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || r.Operation != Update || r.Subresource != "approval" {
		return nil
	}
	if !mayForSigner(ctx, c.cluster, r, "approve", old.Spec.SignerName) {
		return refused(r, "user not permitted to approve requests with signerName %q", old.Spec.SignerName)
	}
	return nil
}

// mayForSigner says whether the user may do something for a signer, or for all of the signer's domain.
func mayForSigner(ctx context.Context, cluster Cluster, r *Request, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		ok, _ := cluster.Allowed(ctx, r.User, authorizationv1.ResourceAttributes{
			Verb: verb, Group: certificatesv1.GroupName, Version: "*", Resource: "signers", Name: name,
		})
		if ok {
			return true
		}
	}
	return false
}
