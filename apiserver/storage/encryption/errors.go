package encryption

import "errors"

var (
	// ErrConfig: the file is no configuration. The error that wraps it says where it is wrong, without the keys.
	ErrConfig = errors.New("invalid encryption configuration")
	// ErrNoProvider: a value is encrypted with something, or with nothing, that the configuration does not have for its resource.
	ErrNoProvider = errors.New("no provider to decrypt with")
	// ErrDamaged: a value is not what its provider has written under that key.
	ErrDamaged = errors.New("the value cannot be decrypted: it is damaged, was moved from another key, or the encryption key is not the one it was written with")
	// ErrUnavailable: a KMS plugin does not answer, or answers with an error.
	ErrUnavailable = errors.New("the KMS plugin is not available")
)
