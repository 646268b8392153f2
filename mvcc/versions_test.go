package mvcc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVersions: a key's whole history, through deletion and re-creation, names the command behind each
// change; and a command leads to its changes, in memory or in the file.
func TestVersions(t *testing.T) {
	for _, tail := range []int{1, 1 << 20} {
		s := openStore(t, Options{TailBytes: tail, CommitInterval: time.Hour})
		s.Apply(1, Command{Txn: does(put("a", "1"))}, Command{Txn: does(put("b", "1"))})
		s.Apply(2, Command{Txn: does(put("a", "2"))})
		require.NoError(t, s.Sync())
		s.Apply(3, Command{Compact: 2})
		s.Apply(4, Command{Txn: does(del("a"), put("c", "1"))})
		s.Apply(7, Command{Txn: does(del("nothing"))}, Command{Txn: does(put("a", "3"))})

		changes, err := s.Versions([]byte("a"))
		require.NoError(t, err)
		type short struct {
			kind            EventType
			rev             Revision
			create, version int64
			cause           Cause
		}
		var got []short
		for _, c := range changes {
			got = append(got, short{c.Type, c.Revision, c.KV.CreateRevision, c.KV.Version, c.Cause})
		}
		require.Equal(t, []short{
			{PutEvent, Revision{2, 0}, 2, 1, Cause{1, 0}},
			{PutEvent, Revision{4, 0}, 2, 2, Cause{2, 0}},
			{DeleteEvent, Revision{5, 0}, 0, 0, Cause{4, 0}},
			{PutEvent, Revision{6, 0}, 6, 1, Cause{7, 1}},
		}, got)
		none, err := s.Versions([]byte("x"))
		require.NoError(t, err)
		require.Empty(t, none)

		for index, want := range map[uint64][]Revision{
			0: nil, 1: {{2, 0}, {3, 0}}, 2: {{4, 0}}, 3: nil, 4: {{5, 0}, {5, 1}}, 5: nil, 7: {{6, 0}}, 8: nil,
		} {
			changes, err := s.ChangesOf(index)
			require.NoError(t, err)
			var got []Revision
			for _, c := range changes {
				require.Equal(t, index, c.Cause.Index)
				got = append(got, c.Revision)
			}
			require.Equal(t, want, got, "entry %d", index)
		}
	}
}

func does(ops ...Op) *TxnRequest { return &TxnRequest{Then: ops} }
