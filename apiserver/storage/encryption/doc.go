// Package encryption keeps objects encrypted in the store: Kubernetes' encryption at rest
// (https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/, apiserver.config.k8s.io/v1 EncryptionConfiguration).
//
//	config.go     the configuration's file, read and checked
//	encryption.go which providers are for which resource; loading the file again
//	provider.go   a provider: a prefix, and how what follows is sealed and opened
//	keys.go       providers with a key in the file: aesgcm, aescbc, secretbox; identity
//	kms.go        the provider whose key is somewhere else: a KMS v2 plugin (kmsclient.go, envelope.go)
//
// A value in the store begins with what encrypted it, as Kubernetes writes it, so that each can read the other's store:
//
//	k8s:enc:aesgcm:v1:KEYNAME: | nonce (12) | ciphertext and tag      authenticated: the key in the store
//	k8s:enc:aescbc:v1:KEYNAME: | IV (16) | ciphertext, PKCS #7        nothing is authenticated
//	k8s:enc:secretbox:v1:KEYNAME: | nonce (24) | box
//	k8s:enc:kms:v2:PLUGIN: | EncryptedObject (protobuf): see envelope.go
//	anything else                                                     the object itself
//
// Invariants:
//   - A value is written by the first provider of its resource, and read by whichever has written it.
//   - A value that cannot be decrypted is an error that says what it is encrypted with, never garbage and never skipped.
//   - Keys are in no error, no log and no String.
//
// Read first: encryption.go, then provider.go.
package encryption
