package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/client-go/tools/cache"
)

// TestPodCertificateRequestsAreKeptForAWhile: a request is waited for until it is old, and deleted then.
func TestPodCertificateRequestsAreKeptForAWhile(t *testing.T) {
	request := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "req-1", UID: "u", CreationTimestamp: metav1.NewTime(testNow),
	}}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	require.NoError(t, index.Add(request))
	now := testNow.Add(time.Minute)
	client := fake.NewClientset(request)
	c := &podCertificateCleaner{client: client, requests: certificateslisters.NewPodCertificateRequestLister(index), now: func() time.Time { return now }}
	ask := Request{types.NamespacedName{Namespace: "ns", Name: "req-1"}}
	result, err := c.Reconcile(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, Result{RequeueAfter: 14 * time.Minute}, result)
	require.Empty(t, client.Actions())

	now = testNow.Add(keepPodCertificate)
	result, err = c.Reconcile(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, Result{}, result)
	require.Len(t, client.Actions(), 1)
	require.True(t, client.Actions()[0].Matches("delete", "podcertificaterequests"))
}
