package volume

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// certificate adds a key and its certificate, in one file or in two. What is on disk is kept until it is time for another; when that
// cannot be had the error is told, and the old one serves on.
func (b *builder) certificate(place string, src *corev1.PodCertificateProjection, def int32) error {
	if b.keepCertificate(src, def) {
		return nil
	}
	made, err := b.manager.Certificates.Certificate(b.ctx, b.pod, place, src)
	if err != nil {
		return err
	}
	add := func(path string, data []byte) {
		if path != "" {
			b.files[path] = file{data: data, mode: b.tokenMode(def), expires: made.RefreshAt.Unix()}
		}
	}
	add(src.KeyPath, made.Key)
	add(src.CertificateChainPath, made.Chain)
	add(src.CredentialBundlePath, slices.Concat(made.Key, made.Chain))
	return nil
}

// keepCertificate takes over the files that are there, if all are and it is not time for others yet.
func (b *builder) keepCertificate(src *corev1.PodCertificateProjection, def int32) bool {
	kept := payload{}
	for _, path := range []string{src.KeyPath, src.CertificateChainPath, src.CredentialBundlePath} {
		if path == "" {
			continue
		}
		old, ok := b.old[path]
		if !ok || time.Now().Unix() >= old.expires {
			return false
		}
		old.mode = b.tokenMode(def)
		kept[path] = old
	}
	maps.Copy(b.files, kept)
	return true
}
