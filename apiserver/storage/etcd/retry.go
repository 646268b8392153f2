package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kontiki/raftstore"
)

// Bounds of the pause before a request is made again.
const (
	retryMin = 5 * time.Millisecond
	retryMax = 100 * time.Millisecond
)

// retry makes a request that may be made twice, again and again while etcd cannot answer it, until
// RequestTimeout is over.
func (s *Store) retry(ctx context.Context, request func(ctx context.Context) error) error {
	return s.attempt(ctx, func(ctx context.Context) (again bool, err error) {
		err = request(ctx)
		return transient(err), err
	})
}

// attempt calls try until it does not want to be called again. Its error is translated; if time is up,
// it is an *UnavailableError about the last one.
func (s *Store) attempt(ctx context.Context, try func(ctx context.Context) (again bool, err error)) error {
	limited, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), s.config.RequestTimeout)
	defer cancel()
	var last error
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		again, err := try(limited)
		if err == nil {
			return nil
		}
		if !again {
			return translate(err)
		}
		if last == nil || !bare(err) {
			last = err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-limited.Done():
			timer.Stop()
			return s.unavailable(ctx, last)
		case <-s.closed:
			timer.Stop()
			return raftstore.ErrClosed
		}
	}
}

// bare reports whether an error says no more than that time was up.
func bare(err error) bool {
	reason := rpctypes.ErrorDesc(err)
	return reason == context.DeadlineExceeded.Error() || reason == context.Canceled.Error()
}
