package controlplane

import (
	"context"
	"fmt"

	"kontiki/apiserver/storage"
	"kontiki/apiserver/storage/etcd"
)

// keyValueStore is what either kind of store does: the member in this process (raftstore.Member), or
// the etcd outside (etcd.Store).
type keyValueStore interface {
	storage.KV
	WaitReady(ctx context.Context) error
	Compact(ctx context.Context, revision int64) error
	Close() error
}

// openOutside takes an etcd outside of this process as the store: no member runs here.
func (c *ControlPlane) openOutside() (err error) {
	config := c.config.Outside
	config.HistoryRetention, config.Log = c.config.HistoryRetention, c.config.Log.With("component", "store")
	if c.outside, err = etcd.Open(config); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	c.kv = c.outside
	return nil
}

// StoreStatus is the status of the store, whichever it is: it encodes to JSON.
func (c *ControlPlane) StoreStatus(ctx context.Context) (any, error) {
	if c.outside != nil {
		return c.outside.Status(ctx), nil
	}
	return c.store.Status()
}

// Compact makes the store forget what was before a revision.
func (c *ControlPlane) Compact(ctx context.Context, revision int64) error {
	return c.kv.Compact(ctx, revision)
}
