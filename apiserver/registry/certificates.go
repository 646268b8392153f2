package registry

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
)

// certificateRows are those of certificates.k8s.io. Nothing signs yet (issue 5).
func certificateRows() []*Resource {
	return []*Resource{certificateSigningRequests(), clusterTrustBundles(), podCertificateRequests()}
}

// certificateSigningRequests: who asks is written down, then somebody approves or denies (approval), then a
// signer puts the certificate into the status. What was asked for never changes.
func certificateSigningRequests() *Resource {
	r := newRow[certificatesv1.CertificateSigningRequest, certificatesv1.CertificateSigningRequestList](
		certificatesv1.SchemeGroupVersion, "certificatesigningrequests", "CertificateSigningRequest")
	r.ShortNames, r.Namespaced = []string{"csr"}, false
	r.Strategy = Strategy{
		NoGeneration:     true,
		ValidateName:     pathSegment,
		PrepareForCreate: signRequester,
		PrepareForUpdate: updatePreparer(func(c, old *certificatesv1.CertificateSigningRequest) { c.Spec = old.Spec }),
		Resets:           []string{"spec"},
		Validate:         validator(validateSigningRequest),
		ValidateUpdate:   updateValidator(signingUpdate{}.validate),
	}
	approval := statusOf(r, func(c, old *certificatesv1.CertificateSigningRequest) {
		conditions := c.Status.Conditions
		c.Spec, c.Status = old.Spec, old.Status
		c.Status.Conditions = stampConditions(conditions, old.Status.Conditions)
	})
	approval.Name, approval.Validate = "approval", signingUpdate{mayApprove: true}.subresource
	status := statusOf(r, func(c, old *certificatesv1.CertificateSigningRequest) {
		c.Spec = old.Spec
		c.Status.Conditions = stampConditions(keepApproval(c.Status.Conditions, old.Status.Conditions), old.Status.Conditions)
	})
	status.Validate = signingUpdate{mayIssue: true}.subresource
	approval.Resets, status.Resets = []string{"spec", "status.certificate"}, []string{"spec", "status.conditions"}
	r.Subresources = []Subresource{approval, status}
	r.Fields = fieldSet(func(c *certificatesv1.CertificateSigningRequest) fields.Set {
		return fields.Set{"spec.signerName": c.Spec.SignerName}
	})
	r.Columns = columns([]string{"Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"})
	r.Row = cells(func(c *certificatesv1.CertificateSigningRequest, now time.Time) []any {
		lasts := none
		if s := c.Spec.ExpirationSeconds; s != nil {
			lasts = duration.HumanDuration(time.Duration(*s) * time.Second)
		}
		return []any{c.Name, age(&c.ObjectMeta, now), orElse(c.Spec.SignerName, none), c.Spec.Username, lasts, signingState(c)}
	})
	return r
}

// signingState: one decision, then what came of it.
func signingState(c *certificatesv1.CertificateSigningRequest) string {
	is := map[certificatesv1.RequestConditionType]bool{}
	for _, condition := range c.Status.Conditions {
		is[condition.Type] = true
	}
	state := "Pending"
	switch {
	case is[certificatesv1.CertificateDenied]:
		state = "Denied"
	case is[certificatesv1.CertificateApproved]:
		state = "Approved"
	}
	if is[certificatesv1.CertificateFailed] {
		state += ",Failed"
	}
	if len(c.Status.Certificate) > 0 {
		state += ",Issued"
	}
	return state
}

// clusterTrustBundles are the authorities that pods can be given to trust.
func clusterTrustBundles() *Resource {
	r := newRow[certificatesv1.ClusterTrustBundle, certificatesv1.ClusterTrustBundleList](
		certificatesv1.SchemeGroupVersion, "clustertrustbundles", "ClusterTrustBundle")
	r.Namespaced = false
	r.Strategy = Strategy{
		NoGeneration:         true,
		NeedsResourceVersion: true,
		ValidateName:         trustBundleName,
		Validate:             validator(validateTrustBundle),
		ValidateUpdate:       updateValidator(validateTrustBundleUpdate),
	}
	r.Fields = fieldSet(func(b *certificatesv1.ClusterTrustBundle) fields.Set {
		return fields.Set{"spec.signerName": b.Spec.SignerName}
	})
	r.Columns = columns([]string{"Name", "SignerName"})
	r.Row = cells(func(b *certificatesv1.ClusterTrustBundle, _ time.Time) []any {
		return []any{b.Name, orElse(b.Spec.SignerName, none)}
	})
	return r
}

// podCertificateRequests are a node agent's, for one of its pods. Not yet: the proof of possession is not verified.
func podCertificateRequests() *Resource {
	r := newRow[certificatesv1.PodCertificateRequest, certificatesv1.PodCertificateRequestList](
		certificatesv1.SchemeGroupVersion, "podcertificaterequests", "PodCertificateRequest")
	r.Strategy = Strategy{
		NoGeneration:         true,
		NeedsResourceVersion: true,
		Default: defaulter(func(c *certificatesv1.PodCertificateRequest) {
			setPointer(&c.Spec.MaxExpirationSeconds, 24*60*60)
		}),
		Validate:       validator(validatePodCertificateRequest),
		ValidateUpdate: updateValidator(validatePodCertificateUpdate),
	}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(c, old *certificatesv1.PodCertificateRequest) { c.Spec = old.Spec })))}
	r.Fields = fieldSet(func(c *certificatesv1.PodCertificateRequest) fields.Set {
		return fields.Set{"spec.signerName": c.Spec.SignerName, "spec.podName": c.Spec.PodName, "spec.nodeName": string(c.Spec.NodeName)}
	})
	r.Columns = columns([]string{"Name", "PodName", "ServiceAccountName", "NodeName", "SignerName", "State"}, "UnverifiedUserAnnotations")
	r.Row = cells(func(c *certificatesv1.PodCertificateRequest, _ time.Time) []any {
		state := "Pending"
		for _, condition := range c.Status.Conditions {
			switch condition.Type {
			case certificatesv1.PodCertificateRequestConditionTypeIssued, certificatesv1.PodCertificateRequestConditionTypeDenied,
				certificatesv1.PodCertificateRequestConditionTypeFailed:
				state = condition.Type
			}
		}
		return []any{c.Name, c.Spec.PodName, c.Spec.ServiceAccountName, string(c.Spec.NodeName), c.Spec.SignerName, state,
			labels.FormatLabels(c.Spec.UnverifiedUserAnnotations)}
	})
	return r
}
