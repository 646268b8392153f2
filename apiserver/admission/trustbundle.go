package admission

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// trustBundleAttest lets those publish the trust anchors of a signer who may "attest" for it.
type trustBundleAttest struct{ cluster Cluster }

// Validate implements Validator.
func (t trustBundleAttest) Validate(ctx context.Context, r *Request) error {
	if r.Operation != Create && r.Operation != Update || r.Subresource != "" {
		return nil
	}
	signer, bundle := bundleOf(r.Object)
	if signer == "" {
		return nil
	}
	if signerBefore, before := bundleOf(r.Old); signerBefore == signer && equality.Semantic.DeepEqual(bundle, before) {
		return nil // its metadata alone: what migrates storage and what collects garbage
	}
	if !mayForSigner(ctx, t.cluster, r, "attest", signer) {
		return refused(r, "user not permitted to attest for signerName %q", signer)
	}
	return nil
}

// bundleOf is the signer and the anchors of a ClusterTrustBundle, in whichever version; empty for anything else.
func bundleOf(obj runtime.Object) (signer, bundle string) {
	switch o := obj.(type) {
	case *certificatesv1.ClusterTrustBundle:
		return o.Spec.SignerName, o.Spec.TrustBundle
	case *certificatesv1beta1.ClusterTrustBundle:
		return o.Spec.SignerName, o.Spec.TrustBundle
	}
	return "", ""
}
