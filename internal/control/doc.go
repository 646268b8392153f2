// Package control is how commands on the same machine talk to a running kontiki about what the
// Kubernetes API does not show: the store, and images that arrive as files.
//
// It is HTTP over a unix socket in the data directory with mode 0600: whoever may open it owns the
// data directory, and so the keys of the cluster, anyway.
package control
