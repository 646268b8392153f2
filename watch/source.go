package watch

import (
	"context"

	"kontiki/mvcc"
)

// Source is what a cache is filled from: a revisioned store that can be read at a revision and
// watched from one. The member in this process and any etcd v3 endpoint implement it.
type Source interface {
	// Revision returns the store's newest revision, linearizably: it is at least the revision of
	// every write that was acknowledged, on any member, before the call.
	Revision(ctx context.Context) (int64, error)

	// Range reads keys. Revision 0 reads linearizably; any other revision reads history and fails
	// with mvcc.ErrCompacted or mvcc.ErrFutureRevision outside what the store holds.
	Range(ctx context.Context, req mvcc.RangeRequest) (mvcc.RangeResult, error)

	// Watch streams changes until ctx ends (the channel is then closed) or a batch carries Err
	// (the channel is closed after it). The receiver may be slow: the source must not drop, and it
	// must not hold up writers.
	Watch(ctx context.Context, req mvcc.WatchRequest) <-chan mvcc.WatchBatch
}
