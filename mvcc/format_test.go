package mvcc

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"kontiki/internal/docbytes"
)

// TestFormatOfTheFile pins the bytes that docs/formats/mvcc-file.md shows.
func TestFormatOfTheFile(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	l.txn(del("a"))
	l.apply(Command{Grant: &LeaseGrant{ID: 0x1234, TTLSeconds: 60}})
	l.apply(Command{Checkpoint: []LeaseCheckpoint{{ID: 0x1234, RemainingMillis: 300}}})
	require.NoError(t, s.Sync())
	require.NoError(t, s.file.db.View(func(tx *bbolt.Tx) error {
		got := map[string]string{}
		require.NoError(t, tx.Bucket(historyBucket).ForEach(func(k, v []byte) error {
			got[hex.EncodeToString(k)] = hex.EncodeToString(v)
			return nil
		}))
		require.Equal(t, map[string]string{
			"0000000000000002" + "00000000": "02" + "02" + "01" + "00" + "0000" + "01" + "0100" + "61" + "31",
			"0000000000000003" + "00000000": "03" + "00" + "00" + "00" + "0200" + "01" + "0200" + "61",
		}, got)
		page, err := docbytes.In("../docs/formats/mvcc-file.md")
		require.NoError(t, err)
		first := "000000000000000200000000"
		require.Contains(t, page, first+got[first])
		require.Contains(t, page, "0000000000001234"+"3cac02")
		require.Equal(t, meta{applied: 4, revision: 3}, readMeta(tx))
		require.Equal(t, "3cac02", hex.EncodeToString(tx.Bucket(leasesBucket).Get([]byte{0, 0, 0, 0, 0, 0, 0x12, 0x34})))
		return nil
	}))
}
