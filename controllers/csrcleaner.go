package controllers

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
)

// How long signing requests are kept, as in Kubernetes: for people to look at, and for the requester to fetch the result.
const (
	keepDecided = time.Hour
	keepPending = 24 * time.Hour
)

// csrCleaner deletes signing requests that are of no use any more.
type csrCleaner struct {
	client   kubernetes.Interface
	requests certificateslisters.CertificateSigningRequestLister
	now      func() time.Time
}

func addCSRCleaner(m *manager) error {
	client, err := m.client("certificate")
	if err != nil {
		return err
	}
	requests := m.shared.Certificates().V1().CertificateSigningRequests()
	c := m.add("csr-cleaner", 1, &csrCleaner{client: client, requests: requests.Lister(), now: time.Now})
	watch(c, requests.Informer(), requestFor[*certificatesv1.CertificateSigningRequest])
	return nil
}

func (c *csrCleaner) Reconcile(ctx context.Context, req Request) (Result, error) {
	csr, err := c.requests.Get(req.Name)
	if err != nil {
		return Result{}, ignoreNotFound(err)
	}
	if left := endOf(csr).Sub(c.now()); left > 0 {
		return Result{RequeueAfter: left}, nil
	}
	err = c.client.CertificatesV1().CertificateSigningRequests().Delete(ctx, csr.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &csr.UID, ResourceVersion: &csr.ResourceVersion},
	})
	return Result{}, ignoreNotFound(err)
}

// endOf is until when a request is kept: for a while after its decision, and not beyond the life of its certificate.
func endOf(csr *certificatesv1.CertificateSigningRequest) time.Time {
	end := csr.CreationTimestamp.Add(keepPending)
	for _, condition := range csr.Status.Conditions {
		since := condition.LastUpdateTime
		if since.IsZero() {
			since = csr.CreationTimestamp
		}
		if decided := since.Add(keepDecided); decided.Before(end) {
			end = decided
		}
	}
	block, _ := pem.Decode(csr.Status.Certificate)
	if block == nil {
		return end
	}
	if issued, err := x509.ParseCertificate(block.Bytes); err == nil && issued.NotAfter.Before(end) {
		end = issued.NotAfter
	}
	return end
}
