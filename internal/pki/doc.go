// Package pki keeps the keys and certificates of one cluster in a directory.
//
// Open reads what is there and creates what is missing: three certificate authorities (cluster,
// store, front proxy), the key that signs service-account tokens, and the certificates that the
// parts of Kontiki show each other. A kubeadm-style directory with the user's own ca.crt and ca.key
// works as well as an empty one. Everything made here is ECDSA P-256 from the standard library.
//
// Keep renews certificates while the process runs, and takes files into use that somebody else has
// changed (kontiki certs). Every tls.Config of a server looks at the present ones at each handshake
// (tls.go); a client asks for its tls.Config at each connection.
//
// Invariants:
//   - A nil error from Open means that every file is on disk (fsynced), belongs together, and is in date.
//   - An authority that exists is never replaced but by Rotate, which keeps the old one trusted until
//     Finish. One that cannot be read, or has lost one of its two files, is an error that names the
//     file. So is a damaged certificate, and a key that others can read.
//   - A certificate is issued again only when it or its key is missing, when it lacks a name or
//     address it needs now, when its authority has changed, or in the last third of its life.
//   - What is in use stays in use when files cannot be read: Keep says so and looks again.
//   - The certificate of a store's member is for its machine alone: it does not name localhost.
//   - Directories are 0700, files 0600; a file appears whole or not at all.
//
// Read pki.go first, then authority.go and snapshot.go; renewal.go and rotation.go are about time.
package pki
