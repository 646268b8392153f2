package wal

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// BenchmarkAppend compares the stores: entries of 256 bytes, one batch after the other, each synced, and
// compacted now and then as raft does.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 512} {
		for _, name := range []string{"wal", "boltdb"} {
			b.Run(fmt.Sprintf("%s/batch=%d", name, batch), func(b *testing.B) { benchmarkAppend(b, name, batch, 256) })
		}
	}
	for _, name := range []string{"wal", "boltdb"} {
		b.Run(name+"/packed=64KiB", func(b *testing.B) { benchmarkAppend(b, name, 1, 64<<10) })
	}
}

func benchmarkAppend(b *testing.B, name string, batch, size int) {
	s := stores[name](b, b.TempDir())
	defer s.Close()
	data, next := make([]byte, size), uint64(1)
	logs := make([]*raft.Log, batch)
	b.SetBytes(int64(batch * size))
	for b.Loop() {
		for i := range logs {
			logs[i] = &raft.Log{Index: next, Term: 1, Data: data}
			next++
		}
		require.NoError(b, s.StoreLogs(logs))
		if next%8192 < uint64(batch) && next > 16384 {
			require.NoError(b, s.DeleteRange(1, next-8192))
		}
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkGet reads entries that are in the page cache.
func BenchmarkGet(b *testing.B) {
	for _, name := range []string{"wal", "boltdb"} {
		b.Run(name, func(b *testing.B) {
			s := stores[name](b, b.TempDir())
			defer s.Close()
			require.NoError(b, s.StoreLogs(commands(1, 10000, 1)))
			var l raft.Log
			for i := uint64(0); b.Loop(); i++ {
				require.NoError(b, s.GetLog(i%10000+1, &l))
			}
		})
	}
}
