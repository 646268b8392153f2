// Package differential sends one corpus of requests to two API servers, Kontiki's and a real kube-apiserver, and
// prints every difference between their answers once, with an id that stays the same from run to run.
//
// The corpus is made from what upstream's discovery documents say and from a small manifest of each kind
// (testdata/manifests.yaml): every verb, media type and option on every kind, good and bad (corpus.go, reads.go,
// writes.go, watches.go), and each manifest again with one value broken at a time (mutate.go). What differs by
// nature (uids, times, revisions, allocated addresses) is normalised first (normalise.go).
//
// Differences that have a reason are listed in testdata/known.tsv with it; docs/conformance.md shows that list.
//
// Read first: corpus.go, then exchange.go and compare.go. `make diff-upstream` runs it;
// KONTIKI_DIFF_ONLY and KONTIKI_DIFF_STEPS choose a part, KONTIKI_DIFF_REPORT names a file for what differs.
package differential
