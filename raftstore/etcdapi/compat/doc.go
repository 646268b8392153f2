// Package compat has no code but tests: it runs the same calls of etcd's clients against a real etcd
// (server/v3/embed) and against a Kontiki member, and compares the answers. They are a package of their own
// so that the tests of etcdapi need no etcd server to be compiled.
//
// Both stores begin empty and get the same calls in the same order, so that revisions are the same
// without more ado. Only what is each one's own is left out of the comparison: ids, terms, sizes, hashes.
// Read first: both_test.go, then kv_test.go.
package compat
