// Package admission is the last say on a request that changes something, or that connects to what runs in the cluster,
// after who may make it: plugins that complete an object with what the cluster has decided elsewhere, or that refuse it.
//
// A plugin is a file here, and a line in chain.go. It implements Mutator, Validator or both. The server calls all mutators in
// that order, then its own validation, then all validators, which see the object as it would be stored.
//
// Plugins run again whenever a write is tried again because somebody else was faster, so they decide by their request
// alone and keep nothing.
//
// Invariants:
//   - What Objects returns is shared and never changed.
//   - An error is an API status error, fit for the client: it says what was refused and why.
//   - Writes of the server's own do not come here.
//
// Read plugin.go first, then serviceaccount.go for a mutator and limitranger.go for one that is both.
package admission
