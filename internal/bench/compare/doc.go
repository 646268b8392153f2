// Package compare puts the same loads on a three-member etcd and on a three-member Kontiki, on this
// machine, and prints figures and ratios. Docs: docs/benchmarks.md.
//
// Each member is a process of its own, with a new data directory, the default settings of its kind, fsync on and no
// TLS, on loopback. There is a program for each kind (member/etcdmember, member/kontikimember), so that none has in
// memory what only the other needs. What is compared are the columns of the table (column.go):
//
//	etcd   etcd, loaded by this process through client/v3
//	grpc   Kontiki, loaded by this process through client/v3
//	own    Kontiki, loaded by goroutines in a member's process that call it as the API server does
//
// In each round every column gets a new cluster, one after the other, so that only one is there at any time.
// Figures are medians over the rounds.
//
// Read first: compare.go, then round.go and member/workload.go.
package compare
