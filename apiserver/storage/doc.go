// Package storage keeps API objects in the revisioned store: a Store for each resource gives them
// create, get, list, guaranteed update (a deletion is one, too) and watch.
//
// Objects live where, and as, Kubernetes keeps them: under /registry/<resource>/<namespace>/<name>,
// as protobuf in the k8s\x00 envelope if they are built in, as JSON if they are custom resources.
// Their resourceVersion is the store's revision and is not part of what is stored.
//
//	backend := storage.Open(kv, storage.Config{...})   // one per API server
//	defer backend.Close()
//	pods := backend.Store(podRow)                      // one per row; cheap, the same each time
//
//	pods.Create(ctx, obj, CreateOptions{})             (*watch.Object, error)
//	pods.Get(ctx, namespace, name, GetOptions{})       (*watch.Object, error)
//	pods.List(ctx, ListOptions{})                      (*List, error)
//	pods.Update(ctx, namespace, name, UpdateOptions{}, // guaranteed update, upsert and delete in one
//	    func(current *watch.Object) (runtime.Object, error))  (Result, error)
//	pods.Watch(ctx, WatchOptions{})                    (*watch.Watcher, error)
//
// and a handler drains a watcher with
//
//	for {
//	    events, err := watcher.Next(ctx) // blocks; all that is ready, to be flushed together
//	    ...
//	}
//
// Invariants:
//   - Every write is one transaction on the condition that nothing it was computed from has changed.
//     A nil error means that it is durable. What an object claims (a cluster IP, a node port) is
//     written and released in that same transaction.
//   - A read without a resourceVersion sees every write that was acknowledged before it began, on any
//     server. It comes from the watch cache once the cache has provably reached the store's revision,
//     otherwise from the store.
//   - A write that changes nothing costs no revision and causes no event.
//
// Read first: kv.go, store.go, update.go, then list.go.
package storage
