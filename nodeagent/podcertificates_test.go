package nodeagent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const testSigner = "example.com/signer"

// podSigner certifies what is asked of testSigner, with a certificate of its own.
type podSigner struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newPodSigner(t *testing.T) *podSigner {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &podSigner{certificate, key}
}

// answer is the status of a request that the signer grants.
func (s *podSigner) answer(t *testing.T, r *certificatesv1.PodCertificateRequest) certificatesv1.PodCertificateRequestStatus {
	stub, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request)
	require.NoError(t, err)
	require.NoError(t, stub.CheckSignature())
	begin, end := time.Now().Truncate(time.Second), time.Now().Add(2*time.Hour).Truncate(time.Second)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: r.Spec.PodName}, NotBefore: begin, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, leaf, s.certificate, stub.PublicKey, s.key)
	require.NoError(t, err)
	at := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
	return certificatesv1.PodCertificateRequestStatus{
		Conditions: []metav1.Condition{{
			Type: certificatesv1.PodCertificateRequestConditionTypeIssued, Status: metav1.ConditionTrue, Reason: "Granted", LastTransitionTime: metav1.Now(),
		}},
		CertificateChain: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		NotBefore:        at(begin), BeginRefreshAt: at(begin.Add(time.Hour)), NotAfter: at(end),
	}
}

// requestOf waits for the request that a node makes for a pod.
func (n *node) requestOf(pod *corev1.Pod) *certificatesv1.PodCertificateRequest {
	n.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list, err := n.client.CertificatesV1().PodCertificateRequests(pod.Namespace).List(n.t.Context(), metav1.ListOptions{FieldSelector: "spec.podName=" + pod.Name})
		require.NoError(n.t, err)
		if len(list.Items) > 0 {
			return &list.Items[0]
		}
	}
	require.FailNow(n.t, "no request", "%s", n.events(pod.Name))
	return nil
}

// TestPodCertificate: a pod that wants a certificate starts when the signer has answered, with a key that fits, beside the
// certificates that it trusts; one that is refused does not start, and says why.
func TestPodCertificate(t *testing.T) {
	n := startNode(t)
	signer := newPodSigner(t)
	trusted := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signer.certificate.Raw}))
	_, err := n.client.CertificatesV1().ClusterTrustBundles().Create(t.Context(), &certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: "example.com:signer:1"}, Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: testSigner, TrustBundle: trusted},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = n.client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "jane"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	withCertificate := func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = "jane"
		name := testSigner
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{PodCertificate: &corev1.PodCertificateProjection{SignerName: testSigner, KeyType: "ECDSAP256", CredentialBundlePath: "both.pem"}},
				{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{SignerName: &name, LabelSelector: &metav1.LabelSelector{}, Path: "trust.pem"}},
			},
		}}})
	}
	granted, refused := n.pod("granted", withCertificate), n.pod("refused", withCertificate)
	for pod, status := range map[*corev1.Pod]certificatesv1.PodCertificateRequestStatus{
		granted: signer.answer(t, n.requestOf(granted)),
		refused: {Conditions: []metav1.Condition{{
			Type: certificatesv1.PodCertificateRequestConditionTypeDenied, Status: metav1.ConditionTrue, Reason: "NotYou", Message: "not for you", LastTransitionTime: metav1.Now(),
		}}},
	} {
		request := n.requestOf(pod)
		require.Equal(t, pod.UID, request.OwnerReferences[0].UID)
		request.Status = status
		_, err := n.client.CertificatesV1().PodCertificateRequests(pod.Namespace).UpdateStatus(t.Context(), request, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	n.await("granted", "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	dir := filepath.Join(n.dir, "pods", string(granted.UID), "volumes", "tls")
	both, err := os.ReadFile(filepath.Join(dir, "both.pem"))
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(both, both)
	require.NoError(t, err)
	require.Equal(t, "granted", pair.Leaf.Subject.CommonName)
	trust, err := os.ReadFile(filepath.Join(dir, "trust.pem"))
	require.NoError(t, err)
	require.Equal(t, trusted, string(trust))

	require.Eventually(t, func() bool {
		list, err := n.client.CoreV1().Events(refused.Namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "involvedObject.name=refused,reason=FailedMount"})
		return err == nil && len(list.Items) > 0
	}, time.Minute, 20*time.Millisecond)
}
