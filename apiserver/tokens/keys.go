package tokens

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
)

// keys are those of an Issuer at one time. They do not change.
type keys struct {
	signer *ecdsa.PrivateKey
	id     string                      // of the signer
	public map[string]*ecdsa.PublicKey // that verify, by id; the signer's is among them
}

// SetKeys has the issuer sign with another key from now on, and verify with its public half and the others.
// The error is ErrKey for keys that cannot be used; the ones before stay in use then.
func (i *Issuer) SetKeys(signer crypto.Signer, others ...crypto.PublicKey) error {
	private, ok := signer.(*ecdsa.PrivateKey)
	if !ok {
		return ErrKey
	}
	set := &keys{signer: private, public: map[string]*ecdsa.PublicKey{}}
	for n, key := range append([]crypto.PublicKey{&private.PublicKey}, others...) {
		public, ok := key.(*ecdsa.PublicKey)
		if !ok || public.Curve != elliptic.P256() {
			return ErrKey
		}
		id, err := keyID(public)
		if err != nil {
			return err
		}
		if set.public[id] = public; n == 0 {
			set.id = id
		}
	}
	i.keys.Store(set)
	return nil
}
