package volume

import (
	"bytes"
	"encoding/pem"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// trustBundle adds the certificates of one ClusterTrustBundle, or of all of a signer that a selector matches: each once, in an
// order of no meaning, without comments and headers (KEP-3257). The file is there, and empty, if there are none and need be none.
func (b *builder) trustBundle(src *corev1.ClusterTrustBundleProjection, def int32) error {
	texts, err := b.trustBundles(src)
	if err != nil {
		return err
	}
	if len(texts) == 0 && (src.Optional == nil || !*src.Optional) {
		return ErrNoTrustBundle
	}
	b.files[src.Path] = file{data: uniteCertificates(texts), mode: def}
	return nil
}

// trustBundles are the contents of those that the source means.
func (b *builder) trustBundles(src *corev1.ClusterTrustBundleProjection) (texts []string, err error) {
	if src.Name != nil {
		one, err := b.in.Sources.ClusterTrustBundle(b.ctx, *src.Name)
		if apierrors.IsNotFound(err) {
			return nil, skipIfOptional(err, src.Optional)
		}
		if err != nil {
			return nil, err
		}
		return []string{one.Spec.TrustBundle}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(src.LabelSelector) // none matches nothing, an empty one everything
	if err != nil || src.SignerName == nil {
		return nil, err
	}
	all, err := b.in.Sources.ClusterTrustBundles(b.ctx, *src.SignerName)
	for _, bundle := range all {
		if selector.Matches(labels.Set(bundle.Labels)) {
			texts = append(texts, bundle.Spec.TrustBundle)
		}
	}
	return texts, err
}

// uniteCertificates is the PEM of all certificates in some texts. They are sorted, so that the file changes only if they do.
func uniteCertificates(texts []string) []byte {
	var all [][]byte
	for _, text := range texts {
		for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
			all = append(all, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		}
	}
	slices.SortFunc(all, bytes.Compare)
	return bytes.Join(slices.CompactFunc(all, bytes.Equal), nil)
}
