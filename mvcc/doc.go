// Package mvcc is a key-value store that remembers: every transaction that writes gets a revision,
// and the store can be read, and watched, as of any revision that has not been compacted away.
// It follows the data model of etcd v3. It knows no raft, no network and no Kubernetes.
//
// # What is where
//
// The file (bbolt) holds history: one record per change, keyed by revision, and beside it the raft
// index up to which the file is complete. The key index (a map and a B-tree in memory, rebuilt when the file
// is opened) has the revisions that touched each key. The tail is the newest stretch of history, in memory: everything
// that is not in the file yet, up to about a second or 2 MiB of changes, and a bounded amount before that.
//
//	            Apply ──► index (memory) ──► tail (memory) ──► file (bbolt, committed in batches)
//	                         │                  │                │
//	Range: which revisions? ─┘                  └── the values ──┘
//	Watch: what happened since revision N? ─────────┴────────────┘
//
// # Invariants
//
//   - Apply is deterministic: the same commands in the same order give the same revisions, the same
//     results and the same content on every member. No clock, no randomness, no map order.
//   - A command is applied at most once. Its raft index is committed to the file in the same bbolt
//     transaction as its effects, and an index that was applied is skipped.
//   - What was applied can be read at once, whether it is in the file yet or not. It is the raft log,
//     not this package, that makes it survive a crash: after one, the file is some earlier state,
//     complete up to its applied index, and the log replays the rest. Sync makes it durable here.
//   - A key changes at most once in a revision, so a revision of a key names one version of it.
//   - Readers never wait for the disk writes of others, watchers never hold up writers.
//
// Lock order: Store.maintenance, Store.commitMu, then Store.mu, then a bbolt transaction. Nobody who has a bbolt read
// transaction open may ask for a lock: bbolt makes a writer that must grow its memory map wait for
// all readers.
//
// Read first: request.go (the vocabulary), keyindex.go (generations, with an example), then apply.go
// and txn.go (a write), range.go (a read), watch.go and lease.go.
package mvcc
