// Package etcd is the store of an API server that keeps its objects in an etcd outside of this process:
// the second implementation of storage.KV, over any endpoint that speaks etcd's v3 API (an etcd, or the
// members of another Kontiki cluster).
//
//	store, err := etcd.Open(etcd.Config{Endpoints: []string{"https://10.0.0.1:2379"}, TLS: …})
//	defer store.Close()
//	err = store.WaitReady(ctx)
//
// Open does not connect. A nil error from Txn is etcd's word that the transaction is on the disks of a
// majority. Who asks (raftstore.WithOrigin) is not sent: etcd has no place for it.
//
// Invariants:
//   - A transaction is sent once. clientv3 sends a request again when the server answers Canceled or
//     DeadlineExceeded, whatever the request is, so its retries are off (Config.MaxUnaryRetries); what
//     may be asked twice, reads, is asked again here. Whether a failed transaction can have happened is
//     decided by whether its bytes were handed to a connection (sent.go), never by an error's text.
//   - A watch has a gRPC stream of its own, not clientv3's Watcher: that one keeps what a slow
//     receiver does not take in memory without bound, reconnects out of sight, and answers a request for
//     progress only when every watch of the process is up to date. Here the stream's flow control holds
//     etcd back, and etcd then serves the watch from its history.
//   - A batch of a watch holds whole revisions. etcd sends the events of a revision in one response:
//     a watch that keeps up gets one response for each revision, one that catches up gets up to 1000
//     whole revisions in each; only with Fragment, which is not asked for, is a response cut elsewhere. So
//     nothing has to be held back until a later event proves a revision complete. The response to a
//     watch that catches up names in its header a revision that the watch has not reached; only responses
//     without events mean progress.
//   - With PrevKV, an event whose previous version is compacted away ends the watch with ErrCompacted,
//     where etcd says nothing and leaves the version out.
//
// Old history is compacted by age (retention.go), as a member does it, rather than by etcd's own
// --auto-compaction, so that --history-retention means the same over either store. All API servers of a
// cluster do so; the one that is furthest wins, and etcd's own may run beside them.
//
// etcd 3.5.13 or later is needed: before, progress could be announced ahead of the events (etcd's issues
// 15220 and 17507). Who restores an etcd from a backup uses etcdutl's --bump-revision --mark-compacted,
// so that nobody goes on from revisions that never were.
//
// Read first: store.go, then txn.go and watch.go.
package etcd
