package controllers

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
)

// keepPodCertificate is how long a node's request for a certificate of a pod is kept, as in Kubernetes: the node has fetched the
// answer by then, or asks anew.
const keepPodCertificate = 15 * time.Minute

// podCertificateCleaner deletes requests for certificates of pods that are of no use any more.
type podCertificateCleaner struct {
	client   kubernetes.Interface
	requests certificateslisters.PodCertificateRequestLister
	now      func() time.Time
}

func addPodCertificateCleaner(m *manager) error {
	client, err := m.client("podcertificaterequestcleaner")
	if err != nil {
		return err
	}
	requests := m.shared.Certificates().V1().PodCertificateRequests()
	c := m.add("podcertificaterequest-cleaner", 1, &podCertificateCleaner{client: client, requests: requests.Lister(), now: time.Now})
	watch(c, requests.Informer(), requestFor[*certificatesv1.PodCertificateRequest])
	return nil
}

func (c *podCertificateCleaner) Reconcile(ctx context.Context, req Request) (Result, error) {
	request, err := c.requests.PodCertificateRequests(req.Namespace).Get(req.Name)
	if err != nil {
		return Result{}, ignoreNotFound(err)
	}
	if left := request.CreationTimestamp.Add(keepPodCertificate).Sub(c.now()); left > 0 {
		return Result{RequeueAfter: left}, nil
	}
	err = c.client.CertificatesV1().PodCertificateRequests(req.Namespace).Delete(ctx, request.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &request.UID},
	})
	return Result{}, ignoreNotFound(err)
}
