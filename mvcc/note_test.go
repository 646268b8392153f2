package mvcc

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotes: notes survive a restart and travel in snapshots, and leave keys and revisions alone.
func TestNotes(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	before, _, err := s.HashAt(0)
	require.NoError(t, err)
	l.apply(Command{Note: &Note{Name: "member/b", Value: []byte("B")}})
	l.apply(Command{Note: &Note{Name: "member/a", Value: []byte{}}})
	l.apply(Command{Note: &Note{Name: "alarm/x", Value: []byte("1")}})
	l.apply(Command{Note: &Note{Name: "gone", Value: []byte("1")}})
	require.NoError(t, s.Sync())
	l.apply(Command{Note: &Note{Name: "gone"}})
	check := func(s *Store) {
		require.Equal(t, []Note{{"member/a", []byte{}}, {"member/b", []byte("B")}}, s.Notes("member/"))
		require.Len(t, s.Notes(""), 3)
		require.Nil(t, s.Note("gone"))
		require.NotNil(t, s.Note("member/a"))
		require.EqualValues(t, 2, s.Revision())
		after, _, err := s.HashAt(0)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
	check(s)
	var snapshot bytes.Buffer
	require.NoError(t, s.WriteSnapshot(&snapshot))
	require.NoError(t, s.Close())
	s, err = Open(s.path, Options{})
	require.NoError(t, err)
	defer s.Close()
	check(s)
	other := openStore(t, Options{})
	require.NoError(t, other.Restore(&snapshot))
	check(other)
}
