package registry

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var conditionsPath = field.NewPath("status", "conditions")

// signRequester writes down who asks; the signer relies on it.
func signRequester(ctx context.Context, obj runtime.Object) {
	c, user := obj.(*certificatesv1.CertificateSigningRequest), AskerOf(ctx)
	c.Spec.Username, c.Spec.UID, c.Spec.Groups, c.Spec.Extra = user.Username, user.UID, user.Groups, nil
	for key, values := range user.Extra {
		if c.Spec.Extra == nil {
			c.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		c.Spec.Extra[key] = certificatesv1.ExtraValue(values)
	}
}

// stampConditions dates the conditions that the client has not dated.
func stampConditions(list, old []certificatesv1.CertificateSigningRequestCondition) []certificatesv1.CertificateSigningRequestCondition {
	now := metav1.Now()
	for i := range list {
		c := &list[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		for _, was := range old {
			if was.Type == c.Type && was.Status == c.Status && !was.LastTransitionTime.IsZero() {
				c.LastTransitionTime = was.LastTransitionTime
				break
			}
		}
	}
	return list
}

// keepApproval restores the decisions in list, which a signer carries along and may have garbled.
func keepApproval(list, old []certificatesv1.CertificateSigningRequestCondition) []certificatesv1.CertificateSigningRequestCondition {
	for _, kind := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied} {
		was := conditionsOf(old, kind)
		if len(conditionsOf(list, kind)) != len(was) {
			continue
		}
		for i := range list {
			if list[i].Type == kind {
				list[i], was = was[0], was[1:]
			}
		}
	}
	return list
}

func conditionsOf(list []certificatesv1.CertificateSigningRequestCondition, kind certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
	var out []certificatesv1.CertificateSigningRequestCondition
	for _, c := range list {
		if c.Type == kind {
			out = append(out, c)
		}
	}
	return out
}

// keyUsages are what a certificate may be good for, in the order in which errors list them.
var keyUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageAny, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
	certificatesv1.UsageContentCommitment, certificatesv1.UsageCRLSign, certificatesv1.UsageDataEncipherment,
	certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature, certificatesv1.UsageEmailProtection,
	certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel,
	certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC, certificatesv1.UsageOCSPSigning,
	certificatesv1.UsageServerAuth, certificatesv1.UsageSMIME, certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
}

func validateSigningRequest(c *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var faults field.ErrorList
	if err := parseRequest(c.Spec.Request); err != nil {
		faults = append(faults, field.Invalid(specPath.Child("request"), c.Spec.Request, err.Error()))
	}
	usages := specPath.Child("usages")
	if len(c.Spec.Usages) == 0 {
		faults = append(faults, field.Required(usages, ""))
	}
	seen := names{}
	for i, u := range c.Spec.Usages {
		faults = append(faults, supported(usages.Index(i), u, keyUsages...)...)
		faults = append(faults, seen.add(usages.Index(i), string(u))...)
	}
	faults = append(faults, signerName(specPath.Child("signerName"), c.Spec.SignerName)...)
	if s := c.Spec.ExpirationSeconds; s != nil && *s < 600 {
		faults = append(faults, field.Invalid(specPath.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return append(faults, signingConditions(c.Status.Conditions)...)
}

func signingConditions(list []certificatesv1.CertificateSigningRequestCondition) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	for i, c := range list {
		at := conditionsPath.Index(i)
		faults = append(faults, required(at.Child("type"), string(c.Type))...)
		faults = append(faults, seen.add(at.Child("type"), string(c.Type))...)
		allowed := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
		switch c.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			allowed = []corev1.ConditionStatus{corev1.ConditionTrue}
		}
		faults = append(faults, oneOf(at.Child("status"), c.Status, allowed...)...)
		if seen[string(certificatesv1.CertificateApproved)] && seen[string(certificatesv1.CertificateDenied)] &&
			(c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied) {
			faults = append(faults, field.Invalid(conditionsPath, c.Type, "Approved and Denied conditions are mutually exclusive"))
		}
	}
	return faults
}

// parseRequest reads a PEM block of a certificate signing request.
func parseRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}

// signerName is "domain/name": a domain of two labels or more, and subdomains with dots between. It must fit into one
// URL segment with a name behind it.
func signerName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, found := strings.Cut(name, "/")
	if !found || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	const domainLimit = validation.DNS1123SubdomainMaxLength
	var faults field.ErrorList
	if len(domain) > domainLimit {
		faults = append(faults, field.TooLong(path, domain, domainLimit))
	}
	faults = append(faults, firstBadLabel(path, domain, validation.IsDNS1123Label)...)
	if !strings.Contains(domain, ".") {
		faults = append(faults, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	faults = append(faults, firstBadLabel(path, rest, validation.IsDNS1123Subdomain)...)
	const limit = domainLimit + 1 + validation.DNS1123SubdomainMaxLength + 1 + validation.DNS1123LabelMaxLength
	if len(name) > limit {
		faults = append(faults, field.TooLong(path, name, limit))
	}
	return faults
}

// firstBadLabel says what is wrong with the first part of text, between dots, that judge refuses.
func firstBadLabel(path *field.Path, text string, judge func(string) []string) field.ErrorList {
	for label := range strings.SplitSeq(text, ".") {
		if messages := judge(label); len(messages) > 0 {
			var faults field.ErrorList
			for _, m := range messages {
				faults = append(faults, field.Invalid(path, text, fmt.Sprintf("validating label %q: %s", label, m)))
			}
			return faults
		}
	}
	return nil
}

// signingUpdate judges a change: who may decide (approval) and who may issue (status) are different people.
type signingUpdate struct{ mayApprove, mayIssue bool }

func (u signingUpdate) subresource(_ context.Context, obj, old runtime.Object) field.ErrorList {
	c := obj.(*certificatesv1.CertificateSigningRequest)
	return append(validateSigningRequest(c), u.validate(c, old.(*certificatesv1.CertificateSigningRequest))...)
}

func (u signingUpdate) validate(c, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	var faults field.ErrorList
	forbid := func(verb string, kind certificatesv1.RequestConditionType) {
		faults = append(faults, field.Forbidden(conditionsPath, fmt.Sprintf("updates may not %s a condition of type %q", verb, kind)))
	}
	for _, kind := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		now, was := conditionsOf(c.Status.Conditions, kind), conditionsOf(old.Status.Conditions, kind)
		decision := kind != certificatesv1.CertificateFailed && !u.mayApprove
		switch {
		case len(now) < len(was):
			forbid("remove", kind)
		case decision && len(now) > len(was):
			forbid("add", kind)
		case decision && !apiequality.Semantic.DeepEqual(now, was):
			forbid("modify", kind)
		}
	}
	if path := field.NewPath("status", "certificate"); !bytes.Equal(c.Status.Certificate, old.Status.Certificate) {
		switch {
		case !u.mayIssue:
			faults = append(faults, field.Forbidden(path, "updates may not set certificate content"))
		case len(old.Status.Certificate) > 0:
			faults = append(faults, field.Forbidden(path, "updates may not modify existing certificate content"))
		default:
			if err := parseCertificates(c.Status.Certificate); err != nil {
				faults = append(faults, field.Invalid(path, "<certificate data>", err.Error()))
			}
		}
	}
	return faults
}

// parseCertificates reads one or more PEM blocks of certificates.
func parseCertificates(data []byte) error {
	found := 0
	for rest := data; ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) > 0 {
			return errors.New("no PEM block headers are permitted")
		}
		if _, err := x509.ParseCertificates(block.Bytes); err != nil {
			return err
		}
	}
	if found == 0 {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}

// trustBundleName: a bundle of a signer begins with the signer's name, colons for its slash.
func trustBundleName(name string, prefix bool) []string {
	if i := strings.LastIndex(name, ":"); i >= 0 {
		name = name[i+1:]
		if name == "" && prefix {
			return nil
		}
	}
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

func validateTrustBundle(b *certificatesv1.ClusterTrustBundle) field.ErrorList {
	var faults field.ErrorList
	at := field.NewPath("metadata", "name")
	if signer := b.Spec.SignerName; signer != "" {
		faults = append(faults, signerName(specPath.Child("signerName"), signer)...)
		if want := strings.ReplaceAll(signer, "/", ":") + ":"; !strings.HasPrefix(b.Name, want) {
			faults = append(faults, field.Invalid(at, b.Name, fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, want)))
		}
	} else if strings.Contains(b.Name, ":") {
		faults = append(faults, field.Invalid(at, b.Name, "ClusterTrustBundle without signer name must not have \":\" in its name"))
	}
	if b.Spec.TrustBundle == "" {
		return append(faults, field.Required(specPath.Child("trustBundle"), ""))
	}
	if err := parseCertificates([]byte(b.Spec.TrustBundle)); err != nil {
		faults = append(faults, field.Invalid(specPath.Child("trustBundle"), "<value omitted>", err.Error()))
	}
	return faults
}

func validateTrustBundleUpdate(b, old *certificatesv1.ClusterTrustBundle) field.ErrorList {
	return immutable(specPath.Child("signerName"), b.Spec.SignerName, old.Spec.SignerName)
}

func validatePodCertificateRequest(c *certificatesv1.PodCertificateRequest) field.ErrorList {
	faults := signerName(specPath.Child("signerName"), c.Spec.SignerName)
	for child, name := range inOrder(map[string]string{
		"podName": c.Spec.PodName, "serviceAccountName": c.Spec.ServiceAccountName, "nodeName": string(c.Spec.NodeName),
	}) {
		for _, m := range apivalidation.NameIsDNSSubdomain(name, false) {
			faults = append(faults, field.Invalid(specPath.Child(child), name, m))
		}
	}
	for child, uid := range inOrder(map[string]string{
		"podUID": string(c.Spec.PodUID), "serviceAccountUID": string(c.Spec.ServiceAccountUID), "nodeUID": string(c.Spec.NodeUID),
	}) {
		switch {
		case uid == "":
			faults = append(faults, field.Required(specPath.Child(child), "must not be empty"))
		case len(uid) > 128:
			faults = append(faults, field.TooLong(specPath.Child(child), uid, 128))
		}
	}
	switch at := specPath.Child("maxExpirationSeconds"); {
	case c.Spec.MaxExpirationSeconds == nil:
		faults = append(faults, field.Required(at, "must be set"))
	case *c.Spec.MaxExpirationSeconds < 3600 || *c.Spec.MaxExpirationSeconds > 91*86400:
		faults = append(faults, field.Invalid(at, *c.Spec.MaxExpirationSeconds, "must be in the range [3600, 7862400]"))
	}
	return faults
}

func validatePodCertificateUpdate(c, old *certificatesv1.PodCertificateRequest) field.ErrorList {
	return immutable(specPath, c.Spec, old.Spec)
}
