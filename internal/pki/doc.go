// Package pki keeps the keys and certificates of one cluster in a directory.
//
// Open reads what is there and creates what is missing: three certificate authorities (cluster,
// store, front proxy), the key that signs service-account tokens, and the certificates that the
// parts of Kontiki show each other. A kubeadm-style directory with the user's own ca.crt and ca.key
// works as well as an empty one. Everything is ECDSA P-256 from the standard library.
//
// Invariants:
//   - A nil error from Open means that every file is on disk (fsynced), belongs together, and is in date.
//   - An authority that exists is never replaced. One that cannot be read, or has lost one of its two
//     files, is an error that names the file. So is a damaged certificate.
//   - A certificate is issued again only when it or its key is missing, when it lacks a name or
//     address it needs now, or when it ends within 30 days.
//   - The certificate of a store's member is for its machine alone: it does not name localhost.
//   - Directories are 0700, files 0600; a file appears whole or not at all.
//
// Not yet: renewal while the process runs, rotation of an authority, and joining by a signing
// request; certificates are looked at on start only, and are therefore good for a year.
//
// Read pki.go first, then authority.go.
package pki
