package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// signer makes one certificate after the other, or fails.
type signer struct {
	made int
	next time.Duration // until the one that is made is to be refreshed
	err  error
}

func (s *signer) Certificate(context.Context, *corev1.Pod, string, *corev1.PodCertificateProjection) (*Certificate, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.made++
	return &Certificate{Key: fmt.Appendf(nil, "key%d ", s.made), Chain: fmt.Appendf(nil, "chain%d", s.made), RefreshAt: time.Now().Add(s.next)}, nil
}

// TestPodCertificates: a key goes with its certificate, in one file and in two; both are kept until it is time for others, and
// longer if there are none.
func TestPodCertificates(t *testing.T) {
	s := &signer{next: time.Hour}
	m := &Manager{Root: t.TempDir(), Certificates: s}
	pod := podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{PodCertificate: &corev1.PodCertificateProjection{CredentialBundlePath: "both.pem"}},
		{PodCertificate: &corev1.PodCertificateProjection{KeyPath: "key.pem", CertificateChainPath: "chain.pem"}},
	}}}})
	holds := func(first, second int) {
		t.Helper()
		dir := m.volumeDir(pod.UID, "v")
		require.Equal(t, fmt.Sprintf("key%d chain%d", first, first), content(t, filepath.Join(dir, "both.pem")))
		require.Equal(t, fmt.Sprintf("key%d ", second), content(t, filepath.Join(dir, "key.pem")))
		require.Equal(t, fmt.Sprintf("chain%d", second), content(t, filepath.Join(dir, "chain.pem")))
	}
	_, err := mount(t, m, pod, nil)
	require.NoError(t, err)
	holds(1, 2)
	_, err = mount(t, m, pod, nil)
	require.NoError(t, err)
	holds(1, 2)

	require.NoError(t, m.Remove(pod.UID))
	s.next = -time.Second // it is time at once
	_, err = mount(t, m, pod, nil)
	require.NoError(t, err)
	_, err = mount(t, m, pod, nil)
	require.NoError(t, err)
	holds(5, 6)
	s.err = errors.New("the signer does not answer")
	_, _ = mount(t, m, pod, nil)
	holds(5, 6)
}
