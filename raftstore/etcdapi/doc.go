// Package etcdapi serves a store member as the etcd v3 gRPC API, so that etcd's own clients (etcdctl,
// clientv3 with its concurrency package, a kube-apiserver) take it for etcd.
//
// # What is the same
//
// KV, Watch, Lease, Maintenance, Cluster and gRPC health have the meaning, the revisions, the error
// codes and the error texts of etcd 3.7 (check.go, errors.go); raftstore/etcdapi/compat runs one table
// of client calls against both. Its ids are hashes of Kontiki's names (header.go).
//
// # What is not
//
//   - A proposal whose outcome is unknown is answered Unavailable, never DeadlineExceeded: clientv3
//     sends writes again on that (errors.go).
//   - A put inside a delete from a key onwards is refused like any other overlap; etcd 3.7.3 accepts it
//     (its issue 22445). So is one in a nested transaction, if the next nested transaction deletes the key.
//   - Ranges of keys only tell the lease as well, as etcd before 3.7 does. Compaction of revision 0 is always refused.
//   - A lease is not kept alive by elections (etcd issue 9395; raftstore/lessor.go).
//   - A request for progress is answered as soon as all watches of the stream have come so far; etcd drops it
//     when one of them is behind. Periodic progress comes every Config.ProgressInterval, 5 s by default
//     (etcd: 10 minutes).
//   - Transactions nest at most mvcc.MaxTxnDepth deep. Compares with an unknown target or relation are refused.
//   - A snapshot is a Kontiki store file (docs/formats/mvcc-file.md), followed by its SHA-256 as in etcd.
//     HashKV is of Kontiki's own making: compare it among members, not with etcd's.
//   - Compressed requests are refused. Pings of clients are answered however many they are; the server itself sends none.
//   - Users and roles are not implemented; certificates say who may connect (auth.go).
//
// Read first: server.go, then kv.go and watchstream.go. The gRPC server below is in grpcserver.
package etcdapi
