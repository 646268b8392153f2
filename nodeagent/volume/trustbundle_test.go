package volume

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pemBlock(content string) string {
	return "-----BEGIN CERTIFICATE-----\n" + content + "\n-----END CERTIFICATE-----\n"
}

func bundle(name, signer, kind, text string) certificatesv1.ClusterTrustBundle {
	return certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kind": kind}},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text},
	}
}

// TestTrustBundles: which certificates a projection has, once each, and what is an error.
func TestTrustBundles(t *testing.T) {
	a, b, c := pemBlock("AAAA"), pemBlock("BBBB"), pemBlock("CCCC")
	src := &sources{bundles: []certificatesv1.ClusterTrustBundle{
		bundle("alone", "", "", "a comment\n"+a), bundle("s:1", "x.io/s", "live", b+a), bundle("s:2", "x.io/s", "live", "between\n"+b), bundle("s:3", "x.io/s", "dead", c),
	}}
	live := &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "live"}}
	for _, test := range []struct {
		name     string
		from     corev1.ClusterTrustBundleProjection
		want     string
		fails    bool
		optional string // the content if it need not be there
	}{
		{name: "by name", from: corev1.ClusterTrustBundleProjection{Name: ptr("alone")}, want: a, optional: a},
		{name: "no such name", from: corev1.ClusterTrustBundleProjection{Name: ptr("none")}, fails: true},
		{name: "by labels", from: corev1.ClusterTrustBundleProjection{SignerName: ptr("x.io/s"), LabelSelector: live}, want: a + b, optional: a + b},
		{name: "all of a signer", from: corev1.ClusterTrustBundleProjection{SignerName: ptr("x.io/s"), LabelSelector: &metav1.LabelSelector{}}, want: a + b + c, optional: a + b + c},
		{name: "without a selector nothing", from: corev1.ClusterTrustBundleProjection{SignerName: ptr("x.io/s")}, fails: true},
		{name: "another signer", from: corev1.ClusterTrustBundleProjection{SignerName: ptr("y.io/s"), LabelSelector: live}, fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, optional := range []bool{false, true} {
				from := test.from
				from.Path, from.Optional = "ca/trust.pem", &optional
				m := &Manager{Root: t.TempDir()}
				dir, err := mount(t, m, podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &from}},
				}}}), src)
				if test.fails && !optional {
					require.Error(t, err)
					continue
				}
				require.NoError(t, err)
				want := test.want
				if optional {
					want = test.optional
				}
				require.Equal(t, want, content(t, filepath.Join(dir, "ca", "trust.pem")))
			}
		})
	}
}
