// Package watch turns the revisions of the store into what API clients see: objects, and streams of
// ADDED, MODIFIED, DELETED and BOOKMARK.
//
// One Feed watches the whole store, once, and hands every change to the Cache whose prefix it falls
// under. So all caches are always at the feed's revision, quiet ones included, and "is this cache
// fresh enough?" is one comparison of integers.
//
// A Cache holds the newest version of every object below its prefix in a copy-on-write tree, and its
// recent changes in a bounded log. A Snapshot is a clone of that tree: lists walk it without a lock.
// A Watcher is no more than a position in that log: publishing a change to any number of watchers is
// one append, and a slow watcher costs nobody anything. One that asks for changes older than the log
// (or has fallen behind it) reads the store's own history until it meets the log again.
//
// An Object is one version of one object. It starts as the bytes that the store holds; decoding it,
// its labels, and its encodings are worked out when somebody first asks, kept for everybody, and
// dropped when nobody asked for a minute or two.
//
// Invariants:
//   - A watcher that starts after revision R gets every change with a revision greater than R that
//     its selection sees, once each, in revision order, or it ends with an error. There is no third case.
//   - A Snapshot of revision R holds exactly what the store held at R.
//   - Nothing that a reader or a watcher does holds up the feed.
//   - Objects handed out are shared: nobody writes to them.
//
// Read first: object.go, then feed.go, cache.go, changelog.go and watcher.go.
package watch
