package raftstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// smallDisk mounts a file system of so many bytes, and returns a directory of it.
func smallDisk(t *testing.T, bytes int) string {
	dir := t.TempDir()
	if err := syscall.Mount("kontiki-test", dir, "tmpfs", 0, fmt.Sprint("size=", bytes)); err != nil {
		t.Skipf("needs to mount a small tmpfs (root): %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	return dir
}

// TestFullDisk_KV18: on a disk that is really full nothing that was acknowledged is lost, and when space is freed the
// member goes on, with the same process or another.
func TestFullDisk_KV18(t *testing.T) {
	for _, kind := range []string{LogWAL, LogBoltDB} {
		t.Run(kind, func(t *testing.T) {
			disk := smallDisk(t, 64<<20)
			ballast := filepath.Join(disk, "ballast")
			require.NoError(t, os.WriteFile(ballast, make([]byte, 40<<20), 0o600))
			cfg := Config{
				Dir: filepath.Join(disk, "store"), NodeID: "a", Bootstrap: true, RaftLog: kind, LogSegmentBytes: 1 << 20,
				MinFreeBytes: 1, RequestTimeout: time.Second, // no alarm comes before it is too late
			}
			m := openMember(t, cfg)
			defer func() { require.NoError(t, m.Close()) }()
			acked := map[string]int64{}
			put := func(i int) error {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				key := fmt.Sprintf("k%05d", i)
				res, err := m.Txn(ctx, putTxn(key, string(make([]byte, 20_000))))
				if err == nil {
					acked[key] = res.Revision
				}
				return err
			}
			check := func() {
				t.Helper()
				require.NoError(t, m.WaitReady(t.Context()))
				for key, revision := range acked {
					res, err := m.Range(t.Context(), mvcc.RangeRequest{Key: []byte(key)})
					require.NoError(t, err)
					require.Len(t, res.KVs, 1, key)
					require.Equal(t, revision, res.KVs[0].ModRevision)
				}
			}
			n, failed := 0, 0
			for ; failed < 5; n++ {
				require.Less(t, n, 5000, "24 MiB are never full")
				if err := put(n); err != nil {
					failed++
				}
			}
			require.NotEmpty(t, acked)
			t.Logf("%d writes were acknowledged before the disk was full", len(acked))
			require.NoError(t, os.Remove(ballast))
			require.Eventually(t, func() bool {
				n++
				for _, a := range m.Alarms() { // it may have been raised on the way
					_ = m.ClearAlarm(t.Context(), a)
				}
				return put(n) == nil
			}, time.Minute, 10*time.Millisecond, "it does not go on")
			check()
			require.NoError(t, m.Close())
			m = openMember(t, cfg)
			check()
		})
	}
}
