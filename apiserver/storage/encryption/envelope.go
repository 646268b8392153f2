package encryption

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"
)

// What a KMS plugin's provider stores is an EncryptedObject: the data, and the seed that it is encrypted with, which only the
// plugin can decrypt. Each value has a key of its own, by HKDF (RFC 5869, its second step) with SHA-256:
//
//	encryptedData = info (32 random bytes) | nonce (12) | AES-GCM with the key Expand(seed, info, 32)
//
// Values of the first servers with KMS v2 have no seed but the AES key itself: nonce | AES-GCM.

const (
	seedBytes = 32
	infoBytes = 32
	keyBytes  = 32

	// Limits of KMS v2.
	maxSourceBytes      = 1 << 10
	maxKeyIDBytes       = 1 << 10
	maxAnnotationsBytes = 32 << 10
)

// opener opens the data of an envelope.
type opener func(data, key []byte) ([]byte, error)

func derive(seed, info []byte) (cipherer, error) {
	secret, err := hkdf.Expand(sha256.New, seed, string(info), keyBytes)
	if err != nil {
		return nil, err
	}
	return newGCM(secret)
}

func sealWithSeed(seed, plain, key []byte) ([]byte, error) {
	info := make([]byte, infoBytes)
	random(info)
	c, err := derive(seed, info)
	if err != nil {
		return nil, err
	}
	return append(info, c.seal(plain, key)...), nil
}

func seedOpener(seed []byte) opener {
	return func(data, key []byte) ([]byte, error) {
		if len(data) < infoBytes {
			return nil, ErrDamaged
		}
		c, err := derive(seed, data[:infoBytes])
		if err != nil {
			return nil, err
		}
		return c.open(data[infoBytes:], key)
	}
}

// openerOf makes an opener of what the plugin has decrypted.
func openerOf(kind kmstypes.EncryptedDEKSourceType, source []byte) (opener, error) {
	if kind == kmstypes.EncryptedDEKSourceType_HKDF_SHA256_XNONCE_AES_GCM_SEED {
		if len(source) < seedBytes {
			return nil, fmt.Errorf("%w: the KMS plugin has decrypted a seed of %d bytes", ErrDamaged, len(source))
		}
		return seedOpener(source), nil
	}
	c, err := newGCM(source)
	if err != nil {
		return nil, fmt.Errorf("%w: the KMS plugin has decrypted a key of %d bytes", ErrDamaged, len(source))
	}
	return c.open, nil
}

// checkEnvelope keeps the limits of the API, for values that are read and for answers of the plugin.
func checkEnvelope(e *kmstypes.EncryptedObject) error {
	annotations := 0
	for name, value := range e.Annotations {
		annotations += len(name) + len(value)
	}
	switch _, known := kmstypes.EncryptedDEKSourceType_name[int32(e.EncryptedDEKSourceType)]; {
	case !known:
		return fmt.Errorf("%w: unknown kind of seed %d", ErrDamaged, e.EncryptedDEKSourceType)
	case len(e.KeyID) == 0 || len(e.KeyID) > maxKeyIDBytes:
		return fmt.Errorf("%w: the key's id has %d bytes, not 1 to %d", ErrDamaged, len(e.KeyID), maxKeyIDBytes)
	case len(e.EncryptedDEKSource) == 0 || len(e.EncryptedDEKSource) > maxSourceBytes:
		return fmt.Errorf("%w: the encrypted seed has %d bytes, not 1 to %d", ErrDamaged, len(e.EncryptedDEKSource), maxSourceBytes)
	case annotations > maxAnnotationsBytes:
		return fmt.Errorf("%w: the annotations have %d bytes, more than %d", ErrDamaged, annotations, maxAnnotationsBytes)
	}
	return nil
}

// seedID tells seeds apart by all that the plugin is told of them.
func seedID(e *kmstypes.EncryptedObject) [sha256.Size]byte {
	hash := sha256.New()
	add := func(piece []byte) {
		hash.Write(binary.BigEndian.AppendUint32(nil, uint32(len(piece))))
		hash.Write(piece)
	}
	add([]byte{byte(e.EncryptedDEKSourceType)})
	add(e.EncryptedDEKSource)
	add([]byte(e.KeyID))
	for _, name := range slices.Sorted(maps.Keys(e.Annotations)) {
		add([]byte(name))
		add(e.Annotations[name])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
