package raftstore

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

var errEnough = errors.New("enough")

func entries(t *testing.T, m *Member) (list []LogEntry) {
	t.Helper()
	require.NoError(t, m.Log(t.Context(), 0, func(e LogEntry) error { list = append(list, e); return nil }))
	return list
}

// TestLog: the raft log reads as who asked for what, and what came of it, after a restart as well.
func TestLog(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true}
	m := openMember(t, cfg)
	ctx := WithOrigin(t.Context(), Origin{User: "alice", UserAgent: "curl", RequestID: "7"})
	_, err := m.Txn(ctx, putTxn("k", "value"))
	require.NoError(t, err)
	guarded := mvcc.TxnRequest{
		Compare: []mvcc.Compare{{Key: []byte("k"), Target: mvcc.CompareModRevision, Result: mvcc.Equal, Number: 2}},
		Then:    []mvcc.Op{{Delete: &mvcc.DeleteRequest{Key: []byte("k"), End: []byte{0}}}},
		Else:    []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte("\xff")}}},
	}
	for range 2 {
		_, err = m.Txn(t.Context(), guarded)
		require.NoError(t, err)
	}
	require.NoError(t, m.Compact(t.Context(), 2))
	check := func(m *Member) {
		list := entries(t, m)
		require.Equal(t, "configuration", list[0].Kind)
		require.Equal(t, []MemberInfo{{ID: "a", Address: "a"}}, list[0].Members)
		var proposals []LogProposal
		for i, e := range list {
			require.EqualValues(t, list[0].Index+uint64(i), e.Index)
			require.True(t, e.Committed)
			proposals = append(proposals, e.Proposals...)
		}
		guard := []string{"mod(k) = 2"}
		then, or := []string{"delete [k, ∞)"}, []string{`put "\xff" (0 bytes)`}
		require.Equal(t, []LogProposal{
			{Kind: "txn", Origin: Origin{User: "alice", UserAgent: "curl", RequestID: "7"}, Then: []string{"put k (5 bytes)"}, Revision: 2},
			{Kind: "txn", Compares: guard, Then: then, Else: or, Revision: 3},
			{Kind: "txn", Compares: guard, Then: then, Else: or, Revision: 4},
			{Kind: "compact", Then: []string{"revision 2"}},
		}, proposals)
		err := m.Log(t.Context(), 2, func(e LogEntry) error { require.EqualValues(t, 2, e.Index); return errEnough })
		require.ErrorIs(t, err, errEnough)
	}
	check(m)
	require.NoError(t, m.Close())
	m = openMember(t, cfg)
	defer func() { require.NoError(t, m.Close()) }()
	require.NoError(t, m.WaitReady(t.Context()))
	check(m)
}

// TestHistory: a key's changes name who made them, for as long as the log has the entries.
func TestHistory(t *testing.T) {
	m := openMember(t, Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true, SnapshotEntries: 4})
	defer func() { require.NoError(t, m.Close()) }()
	for i, user := range []string{"alice", "bob"} {
		_, err := m.Txn(WithOrigin(t.Context(), Origin{User: user}), putTxn("k", fmt.Sprint(i)))
		require.NoError(t, err)
	}
	_, err := m.Txn(WithOrigin(t.Context(), Origin{User: "carol"}), mvcc.TxnRequest{Then: []mvcc.Op{{Delete: &mvcc.DeleteRequest{Key: []byte("k")}}}})
	require.NoError(t, err)
	who := func() (list []string) {
		changes, err := m.History([]byte("k"))
		require.NoError(t, err)
		for _, c := range changes {
			by := "-"
			if c.By != nil {
				by = c.By.User
			}
			list = append(list, fmt.Sprintf("%d %s v%d %q %s", c.Revision, c.Kind, c.Version, c.Value, by))
		}
		return list
	}
	require.Equal(t, []string{`2 put v1 "0" alice`, `3 put v2 "1" bob`, `4 delete v0 "" carol`}, who())
	for i := range 20 {
		_, err := m.Txn(t.Context(), putTxn("other", fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.NoError(t, m.raft.Snapshot().Error())
	require.Equal(t, []string{`2 put v1 "0" -`, `3 put v2 "1" -`, `4 delete v0 "" -`}, who())
}

// TestHashes: all members have the same fingerprint at every common revision, those that are behind catch up, and
// one that differs raises an alarm.
func TestHashes(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.HashInterval = 20 * time.Second })
		defer c.close()
		for i := range 10 {
			c.put(c.members[names[i%3]], fmt.Sprint("k", i))
		}
		for rev := range int64(12) {
			hashes, err := c.members["b"].Hashes(t.Context(), rev)
			require.NoError(t, err)
			require.Len(t, hashes, 3)
			for _, h := range hashes {
				require.NoError(t, h.Err)
				require.Equal(t, hashes[0].Hash, h.Hash)
				require.EqualValues(t, h.Revision, hashes[0].Revision)
			}
		}
		require.NoError(t, c.members["a"].Compact(t.Context(), 8))
		c.same()
		hashes, err := c.members["b"].Hashes(t.Context(), 5)
		require.NoError(t, err)
		for _, h := range hashes {
			require.ErrorIs(t, h.Err, mvcc.ErrCompacted)
		}
		time.Sleep(time.Minute)
		leader := c.leader(names...)
		require.NotZero(t, leader.counters.hashChecks.Load())
		require.Empty(t, leader.Alarms())

		victim := c.members[c.others(leader)[0]]
		victim.store.Apply(victim.store.Applied()+1000, mvcc.Command{Txn: new(putTxn("k", "bit rot"))}) // never came through raft
		c.put(leader, "k")
		time.Sleep(30 * time.Second)
		require.Equal(t, []Alarm{{Kind: AlarmCorrupt, MemberID: victim.cfg.NodeID}}, leader.Alarms())
	})
}

// TestNoSpace: past the quota nothing is added, on any member; deletes and compaction go on; and once there is
// room the alarm can be cleared.
func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.QuotaBytes = 1 << 20 })
		defer c.close()
		value := string(make([]byte, 50_000))
		var err error
		for i := 0; err == nil; i++ {
			_, err = c.members[names[i%3]].Txn(t.Context(), putTxn("k", value))
			time.Sleep(200 * time.Millisecond)
		}
		require.ErrorIs(t, err, ErrNoSpace)
		for _, m := range c.members {
			_, err := m.GrantLease(t.Context(), 0, 10)
			require.ErrorIs(t, err, ErrNoSpace)
			require.NotEmpty(t, m.Alarms())
		}
		m := c.members["a"]
		_, err = m.Txn(t.Context(), mvcc.TxnRequest{Then: []mvcc.Op{{Delete: &mvcc.DeleteRequest{Key: []byte("k")}}}})
		require.NoError(t, err)
		rev, err := m.Revision(t.Context())
		require.NoError(t, err)
		require.NoError(t, m.Compact(t.Context(), rev))
		time.Sleep(5 * time.Second)
		for _, a := range m.Alarms() {
			require.Equal(t, AlarmNoSpace, a.Kind)
			require.NoError(t, m.ClearAlarm(t.Context(), a))
		}
		c.put(m, "k")
		time.Sleep(5 * time.Second)
		require.Empty(t, m.Alarms())
		c.same()
	})
}

// TestDiskNearlyFull: the alarm comes before the disk is full, while there is room to write it down.
func TestDiskNearlyFull(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := openMember(t, Config{Dir: dir, NodeID: "a", Bootstrap: true, MinFreeBytes: 1 << 62})
		defer func() { require.NoError(t, m.Close()) }()
		time.Sleep(3 * spaceInterval)
		require.Equal(t, []Alarm{{Kind: AlarmNoSpace, MemberID: "a"}}, m.Alarms())
		_, err := m.Txn(t.Context(), putTxn("k", "v"))
		require.ErrorIs(t, err, ErrNoSpace)
	})
}

// TestLogOfAnotherMember: another member's log is the same as it says itself, however many pages it takes; so is that of one that
// does not run, from its directory.
func TestLogOfAnotherMember(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		long := make([]byte, 100_000) // a key is shown, a value is not
		for i := range long {
			long[i] = 'k'
		}
		for i := range 30 {
			c.put(c.members[names[i%3]], fmt.Sprint(string(long), i))
		}
		c.same()
		leader := c.leader(names...)
		asker, follower := c.members[c.others(leader)[0]], c.members[c.others(leader)[1]]
		var got []LogEntry
		add := func(e LogEntry) error {
			e.AppendedAt = e.AppendedAt.UTC() // JSON forgets which way it is UTC
			got = append(got, e)
			return nil
		}
		var want []LogEntry
		for _, m := range []*Member{leader, follower} {
			want, got = entries(t, m), nil
			for i := range want {
				want[i].AppendedAt = want[i].AppendedAt.UTC()
			}
			require.NoError(t, asker.LogOf(t.Context(), m.cfg.NodeID, 0, add))
			require.Equal(t, want, got)
		}
		cfg := follower.cfg
		got = nil
		require.NoError(t, asker.LogOf(t.Context(), cfg.NodeID, 7, add))
		require.EqualValues(t, 7, got[0].Index)
		require.ErrorIs(t, asker.LogOf(t.Context(), cfg.NodeID, 0, func(LogEntry) error { return errEnough }), errEnough)
		require.ErrorIs(t, asker.LogOf(t.Context(), "x", 0, add), ErrMemberNotFound)
		require.NoError(t, asker.DefragmentMember(t.Context(), cfg.NodeID))
		require.ErrorIs(t, asker.DefragmentMember(t.Context(), "x"), ErrMemberNotFound)

		c.stop(cfg.NodeID) // a leader would hand over first, and get its successor's first entry
		require.Error(t, asker.LogOf(t.Context(), cfg.NodeID, 0, add))
		got = nil
		require.NoError(t, ReadLog(t.Context(), Config{Dir: cfg.Dir, NodeID: cfg.NodeID, Log: quiet()}, 0, add))
		require.Equal(t, want, got)
		require.ErrorContains(t, ReadLog(t.Context(), Config{Dir: cfg.Dir + "x", NodeID: cfg.NodeID, Log: quiet()}, 0, add), "there is no raft log in")
		c.start(cfg.NodeID)
		c.same()
	})
}
