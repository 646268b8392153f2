package controllers

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// signers are those that the cluster's authority signs for, and what each demands of a request. legacy-unknown demands
// nothing: who approves such a request answers for it.
var signers = map[string]func(*x509.CertificateRequest, usageSet) error{
	certificatesv1.KubeAPIServerClientKubeletSignerName: checkNodeClient,
	certificatesv1.KubeletServingSignerName:             checkNodeServing,
	certificatesv1.KubeAPIServerClientSignerName: func(_ *x509.CertificateRequest, usages usageSet) error {
		return usages.check(certificatesv1.UsageClientAuth)
	},
	"kubernetes.io/legacy-unknown": func(*x509.CertificateRequest, usageSet) error { return nil },
}

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
)

// checkNodeClient: a node's agent as a client, under the user and group that the Node authorizer knows, and no other names.
func checkNodeClient(r *x509.CertificateRequest, usages usageSet) error {
	if err := checkNodeSubject(r); err != nil {
		return err
	}
	if len(r.DNSNames)+len(r.IPAddresses)+len(r.EmailAddresses)+len(r.URIs) > 0 {
		return errors.New("subject alternative names are not allowed")
	}
	return usages.check(certificatesv1.UsageClientAuth)
}

// checkNodeServing: what a node's agent shows to the API server, for names and addresses.
func checkNodeServing(r *x509.CertificateRequest, usages usageSet) error {
	switch err := checkNodeSubject(r); {
	case err != nil:
		return err
	case len(r.DNSNames)+len(r.IPAddresses) == 0:
		return errors.New("at least one DNS name or IP address is required")
	case len(r.EmailAddresses)+len(r.URIs) > 0:
		return errors.New("only DNS names and IP addresses are allowed")
	}
	return usages.check(certificatesv1.UsageServerAuth)
}

func checkNodeSubject(r *x509.CertificateRequest) error {
	if !slices.Equal(r.Subject.Organization, []string{nodesGroup}) {
		return fmt.Errorf("the organization must be %s alone", nodesGroup)
	}
	if name, ok := strings.CutPrefix(r.Subject.CommonName, nodeUserPrefix); !ok || name == "" {
		return fmt.Errorf("the common name must begin with %s", nodeUserPrefix)
	}
	return nil
}

// usageSet is what a certificate is to be used for.
type usageSet map[certificatesv1.KeyUsage]bool

func usagesOf(csr *certificatesv1.CertificateSigningRequest) usageSet {
	set := usageSet{}
	for _, u := range csr.Spec.Usages {
		set[u] = true
	}
	return set
}

// check demands a usage, with those of the key that go with it, and no others. Key encipherment is for RSA keys.
func (s usageSet) check(wanted certificatesv1.KeyUsage) error {
	for _, u := range slices.Sorted(maps.Keys(s)) {
		if u != wanted && u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment {
			return fmt.Errorf("usage %q is not allowed", u)
		}
	}
	if !s[wanted] {
		return fmt.Errorf("usage %q is required", wanted)
	}
	return nil
}

var keyUsages = map[certificatesv1.KeyUsage]x509.KeyUsage{
	certificatesv1.UsageSigning:           x509.KeyUsageDigitalSignature,
	certificatesv1.UsageDigitalSignature:  x509.KeyUsageDigitalSignature,
	certificatesv1.UsageContentCommitment: x509.KeyUsageContentCommitment,
	certificatesv1.UsageKeyEncipherment:   x509.KeyUsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement:      x509.KeyUsageKeyAgreement,
	certificatesv1.UsageDataEncipherment:  x509.KeyUsageDataEncipherment,
	certificatesv1.UsageEncipherOnly:      x509.KeyUsageEncipherOnly,
	certificatesv1.UsageDecipherOnly:      x509.KeyUsageDecipherOnly,
}

var extendedUsages = map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
	certificatesv1.UsageAny:             x509.ExtKeyUsageAny,
	certificatesv1.UsageServerAuth:      x509.ExtKeyUsageServerAuth,
	certificatesv1.UsageClientAuth:      x509.ExtKeyUsageClientAuth,
	certificatesv1.UsageCodeSigning:     x509.ExtKeyUsageCodeSigning,
	certificatesv1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageSMIME:           x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageIPsecEndSystem:  x509.ExtKeyUsageIPSECEndSystem,
	certificatesv1.UsageIPsecTunnel:     x509.ExtKeyUsageIPSECTunnel,
	certificatesv1.UsageIPsecUser:       x509.ExtKeyUsageIPSECUser,
	certificatesv1.UsageTimestamping:    x509.ExtKeyUsageTimeStamping,
	certificatesv1.UsageOCSPSigning:     x509.ExtKeyUsageOCSPSigning,
	certificatesv1.UsageMicrosoftSGC:    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
	certificatesv1.UsageNetscapeSGC:     x509.ExtKeyUsageNetscapeServerGatedCrypto,
}

// x509 is the set as certificates have it. Nobody is made an authority: "cert sign" and "crl sign" are refused, also of
// the signer that demands nothing.
func (s usageSet) x509() (usage x509.KeyUsage, extended []x509.ExtKeyUsage, err error) {
	for _, u := range slices.Sorted(maps.Keys(s)) {
		if k, ok := keyUsages[u]; ok {
			usage |= k
		} else if e, ok := extendedUsages[u]; !ok {
			return 0, nil, fmt.Errorf("usage %q is not allowed", u)
		} else if !slices.Contains(extended, e) {
			extended = append(extended, e)
		}
	}
	return usage, extended, nil
}
