package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// defaultTokenLifetime is the API's default of expirationSeconds.
const defaultTokenLifetime = 3600

// token adds a service account token. The one on disk is kept until a fifth of its life is left.
func (b *builder) token(src *corev1.ServiceAccountTokenProjection, def int32) error {
	lifetime := int64(defaultTokenLifetime)
	if src.ExpirationSeconds != nil {
		lifetime = *src.ExpirationSeconds
	}
	if old, ok := b.old[src.Path]; ok && time.Until(time.Unix(old.expires, 0)) > time.Duration(lifetime)*time.Second/5 {
		old.mode = b.tokenMode(def)
		b.files[src.Path] = old
		return nil
	}
	token, expires, err := b.manager.Tokens.Token(b.ctx, b.pod, src.Audience, lifetime)
	if err != nil {
		return err
	}
	b.files[src.Path] = file{data: []byte(token), mode: b.tokenMode(def), expires: expires.Unix()}
	return nil
}

// tokenMode makes tokens readable for the pod's own group alone where one is named; otherwise a container
// that does not run as root could not read its token with less than the default mode.
func (b *builder) tokenMode(def int32) int32 {
	if fsGroup(b.pod) != nil {
		return 0o640
	}
	return def
}
