package encryption

import (
	"bytes"
	"encoding/base64"
	"fmt"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

// marker begins every encrypted value.
var marker = []byte("k8s:enc:")

// provider encrypts and decrypts values. It is safe for concurrent use.
type provider interface {
	// prefix begins the values that the provider writes, and no others.
	prefix() []byte
	// seal encrypts plain, which is to be kept under key. The result is what follows the prefix.
	seal(plain, key []byte) ([]byte, error)
	// open is the reverse. stale: seal would use another key by now.
	open(sealed, key []byte) (plain []byte, stale bool, err error)
}

// providers are a resource's, in the file's order.
type providers []provider

// seal encrypts with the first provider.
func (list providers) seal(key string, plain []byte) ([]byte, error) {
	first := list[0]
	sealed, err := first.seal(plain, []byte(key))
	if err != nil {
		return nil, err
	}
	if len(first.prefix()) == 0 {
		return sealed, nil
	}
	return append(bytes.Clone(first.prefix()), sealed...), nil
}

// open decrypts with the provider that has written the value. stale: the first provider would write it differently.
func (list providers) open(key string, stored []byte) (plain []byte, stale bool, err error) {
	for i, p := range list {
		sealed, ok := bytes.CutPrefix(stored, p.prefix())
		if !ok || len(p.prefix()) == 0 && isSealed(stored) {
			continue
		}
		plain, stale, err := p.open(sealed, []byte(key))
		return plain, stale || i > 0, err
	}
	return nil, false, unreadable(stored)
}

// isSealed says whether a value is encrypted, with whatever.
func isSealed(stored []byte) bool { return bytes.HasPrefix(stored, marker) }

// unreadable says what a value is encrypted with, for whoever has to find the key again.
func unreadable(stored []byte) error {
	if !isSealed(stored) {
		return fmt.Errorf("%w: the value is not encrypted, and the encryption configuration has no identity provider for it", ErrNoProvider)
	}
	return fmt.Errorf("%w: the value is encrypted with %s, which the encryption configuration does not have for it", ErrNoProvider, sealedWith(stored))
}

// sealedWith is the prefix of a value: PROVIDER:VERSION:NAME.
func sealedWith(stored []byte) string {
	rest := stored[len(marker):min(len(stored), 300)]
	pieces := bytes.SplitN(rest, []byte(":"), 4)
	if len(pieces) < 4 {
		return "something unknown"
	}
	return fmt.Sprintf("%s:%s:%s", pieces[0], pieces[1], pieces[2])
}

// build makes the providers of a configuration that has been validated. plugin finds the one of a KMS.
func build(configs []apiserverv1.ProviderConfiguration, plugin func(*apiserverv1.KMSConfiguration) provider) (list providers, err error) {
	for _, c := range configs {
		var made []provider
		switch {
		case c.AESGCM != nil:
			made, err = keyed("aesgcm", c.AESGCM.Keys, newGCM)
		case c.AESCBC != nil:
			made, err = keyed("aescbc", c.AESCBC.Keys, newCBC)
		case c.Secretbox != nil:
			made, err = keyed("secretbox", c.Secretbox.Keys, newBox)
		case c.KMS != nil:
			made = []provider{plugin(c.KMS)}
		default:
			made = []provider{identity{}}
		}
		if err != nil {
			return nil, err
		}
		list = append(list, made...)
	}
	return list, nil
}

// keyed makes a provider of each key.
func keyed(name string, keys []apiserverv1.Key, newCipher func(secret []byte) (cipherer, error)) (list []provider, err error) {
	for _, key := range keys {
		secret, err := base64.StdEncoding.DecodeString(key.Secret)
		if err != nil {
			return nil, ErrConfig // it has been validated
		}
		c, err := newCipher(secret)
		if err != nil {
			return nil, fmt.Errorf("%w: key %s: %w", ErrConfig, key.Name, err)
		}
		list = append(list, staticKey{fmt.Appendf(nil, "%s%s:v1:%s:", marker, name, key.Name), c})
	}
	return list, nil
}
