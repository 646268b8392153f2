package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// benchStore measures puts of 256 bytes to a store of one member, each fsynced before it is answered.
func benchStore(ctx context.Context, dir string, each time.Duration) error {
	store, err := raftstore.Open(raftstore.Config{
		Dir: filepath.Join(dir, "store"), NodeID: "bench", Bootstrap: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.WaitReady(ctx); err != nil {
		return err
	}
	value := bytes.Repeat([]byte("x"), 256)
	for _, clients := range []int{1, 64} {
		m, err := load(ctx, clients, each, func(ctx context.Context, n int64) error {
			_, err := store.Txn(ctx, put(fmt.Sprintf("/bench/%d/%d", clients, n), value))
			return err
		})
		if err != nil {
			return err
		}
		m.report(fmt.Sprintf("store: put 256 B, fsync, %d clients", clients))
	}
	return nil
}

func put(key string, value []byte) mvcc.TxnRequest {
	return mvcc.TxnRequest{Then: []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte(key), Value: value}}}}
}
