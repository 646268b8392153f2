package storage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage/encryption"
	"kontiki/watch"
)

// Config of a Backend. The zero value is usable.
type Config struct {
	Log   *slog.Logger // nil discards
	Watch watch.Config // of the feed; its Log defaults to Log
	// Encryption encrypts objects in the store; nil does not. It must outlive the Backend.
	Encryption *encryption.Encryption
	// FreshWait is how long a read waits for the cache to reach the revision that it needs, before
	// it turns to the store itself or, if the revision does not exist yet, fails. 0 means 3 s, as in
	// kube-apiserver.
	FreshWait time.Duration
	// ExpiryPeriod is how often objects past their row's TTL are looked for; 0 means a minute.
	ExpiryPeriod time.Duration
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Watch.Log == nil {
		c.Watch.Log = c.Log
	}
	if c.FreshWait == 0 {
		c.FreshWait = 3 * time.Second
	}
	if c.ExpiryPeriod == 0 {
		c.ExpiryPeriod = time.Minute
	}
	return c
}

// Backend is what all resources of an API server share: the store, and the one feed that watches it.
type Backend struct {
	kv     KV
	feed   *watch.Feed
	config Config

	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex // guards stores
	stores map[*registry.Resource]*Store
}

// Open starts the feed and the expiry of objects with a TTL. The caller must Close the Backend
// before kv.
func Open(kv KV, config Config) *Backend {
	config = config.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	b := &Backend{
		kv: kv, config: config, cancel: cancel,
		feed:   watch.NewFeed(kv, config.Watch),
		stores: map[*registry.Resource]*Store{},
	}
	b.done.Go(func() { b.expire(ctx) })
	return b
}

// Close ends the feed, all watchers and the expiry.
func (b *Backend) Close() {
	b.cancel()
	b.done.Wait()
	b.feed.Close()
}

// Store returns the storage of a row. It costs nothing until it is used: the row's cache loads with
// the first read.
func (b *Backend) Store(row *registry.Resource) *Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.stores[row]; s != nil {
		return s
	}
	s := newStore(b, row)
	b.stores[row] = s
	return s
}

// Forget drops the storage of a row that has left the table for good.
func (b *Backend) Forget(row *registry.Resource) {
	b.mu.Lock()
	s := b.stores[row]
	delete(b.stores, row)
	b.mu.Unlock()
	if s != nil {
		s.cache.Close()
	}
}

// all returns the stores that exist.
func (b *Backend) all() []*Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	stores := make([]*Store, 0, len(b.stores))
	for _, s := range b.stores {
		stores = append(stores, s)
	}
	return stores
}
