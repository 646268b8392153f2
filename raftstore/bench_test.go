package raftstore

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// BenchmarkPut writes 256-byte values through one member, with everything synced to disk: log writes
// before an answer, the store behind it.
func BenchmarkPut(b *testing.B) {
	for _, clients := range []int{1, 16, 64, 512} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			m := benchMember(b)
			run(b, clients, func(i int64) error {
				_, err := m.Txn(b.Context(), putTxn(fmt.Sprintf("/bench/%06d", i%10_000), value256))
				return err
			})
		})
	}
}

// BenchmarkGet reads one key, linearizably.
func BenchmarkGet(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			m := benchMember(b)
			_, err := m.Txn(b.Context(), putTxn("/bench/key", value256))
			require.NoError(b, err)
			run(b, clients, func(int64) error {
				_, err := m.Range(b.Context(), mvcc.RangeRequest{Key: []byte("/bench/key")})
				return err
			})
		})
	}
}

// BenchmarkFsync is the measure for BenchmarkPut: one bbolt commit of 256 bytes to the same kind of file.
func BenchmarkFsync(b *testing.B) {
	log, err := openBolt(filepath.Join(b.TempDir(), stableFile))
	require.NoError(b, err)
	defer log.Close()
	for b.Loop() {
		require.NoError(b, log.Set([]byte("k"), []byte(value256)))
	}
}

// BenchmarkOpen is the time from Open to ready of a member that was killed with 10,000 entries in its log.
func BenchmarkOpen(b *testing.B) {
	m := benchMember(b)
	for i := range 10_000 {
		_, err := m.Txn(b.Context(), putTxn(fmt.Sprintf("/bench/%06d", i), value256))
		require.NoError(b, err)
	}
	dir := filepath.Join(b.TempDir(), "copy")
	copyMember(b, m, dir)
	for b.Loop() {
		m := openMember(b, Config{Dir: dir, NodeID: "a"})
		require.NoError(b, m.WaitReady(b.Context()))
		b.StopTimer()
		require.NoError(b, m.Close())
		b.StartTimer()
	}
}

var value256 = string(make([]byte, 256))

func benchMember(b *testing.B) *Member {
	m := openMember(b, Config{Dir: b.TempDir(), NodeID: "a", Bootstrap: true})
	b.Cleanup(func() { require.NoError(b, m.Close()) })
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	require.NoError(b, m.WaitReady(ctx))
	return m
}

// run has clients call f b.N times in all, and reports the rate.
func run(b *testing.B, clients int, f func(i int64) error) {
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range clients {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}
