package rejoin

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// leader is a leader of term 2 that says what the test wants to a follower.
type leader struct {
	t     *testing.T
	trans *raft.InmemTransport
}

func (l leader) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("a"), Addr: []byte("a")}
}

// appendAfter sends entries that follow an entry, and says whether the follower took them.
func (l leader) appendAfter(term, prev, prevTerm, commit uint64, entries ...*raft.Log) bool {
	resp, err := l.send(term, prev, prevTerm, commit, entries)
	require.NoError(l.t, err)
	return resp.Success
}

// tryAfter sends entries to a follower that may not answer.
func (l leader) tryAfter(term, prev, prevTerm uint64, entries []*raft.Log) error {
	_, err := l.send(term, prev, prevTerm, 0, entries)
	return err
}

func (l leader) send(term, prev, prevTerm, commit uint64, entries []*raft.Log) (resp raft.AppendEntriesResponse, err error) {
	err = l.trans.AppendEntries("b", "b", &raft.AppendEntriesRequest{
		RPCHeader: l.header(), Term: term, Leader: []byte("a"),
		PrevLogEntry: prev, PrevLogTerm: prevTerm, Entries: entries, LeaderCommitIndex: commit,
	}, &resp)
	return resp, err
}

// snapshot sends a snapshot of words up to an index.
func (l leader) snapshot(index, term uint64, words []string) {
	data := encoded(words)
	var resp raft.InstallSnapshotResponse
	require.NoError(l.t, l.trans.InstallSnapshot("b", "b", &raft.InstallSnapshotRequest{
		RPCHeader: l.header(), SnapshotVersion: raft.SnapshotVersionMax, Term: 2, Leader: []byte("a"),
		LastLogIndex: index, LastLogTerm: term, Size: int64(data.Len()),
		Configuration: raft.EncodeConfiguration(servers), ConfigurationIndex: 1,
	}, &resp, data))
	require.True(l.t, resp.Success, "the snapshot is accepted")
}

// follow starts follower b, with entries 2 to last of term 1 in its log, none committed, behind the
// configuration.
func follow(t *testing.T, store string, guarded bool, last uint64) (*member, leader) {
	m := newMember(t, "b", store, guarded)
	_, trans := raft.NewInmemTransport("a")
	trans.Connect("b", m.trans)
	l := leader{t, trans}
	m.start(m.patient())
	require.True(t, l.appendAfter(1, 1, 1, 1, entries(2, last, 1)...))
	return m, l
}

// patient is a configuration with which a follower does not stand for election while the test thinks.
func (m *member) patient() *raft.Config {
	c := m.config()
	c.HeartbeatTimeout, c.ElectionTimeout = 1000*time.Hour, 1000*time.Hour
	return c
}

func (m *member) requireLog(first, last uint64) {
	m.t.Helper()
	f, err := m.log.FirstIndex()
	require.NoError(m.t, err)
	l, err := m.log.LastIndex()
	require.NoError(m.t, err)
	require.Equal(m.t, []uint64{first, last}, []uint64{f, l}, "first and last index")
}

// TestUpstream697 shows what raft 1.8.0 does without the guard: the follower refuses what follows the
// snapshot, however often it is sent. If this test fails, upstream has changed, and the guard may go.
func TestUpstream697(t *testing.T) {
	for store := range logStores {
		for name, last := range map[string]uint64{"log longer": 30, "log as long": 20} {
			t.Run(store+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, l := follow(t, store, false, last)
					defer m.stop()
					for range 3 {
						l.snapshot(20, 2, wordsOf(2, 20, 2))
						require.False(t, l.appendAfter(2, 20, 2, 23, entries(21, 23, 2)...))
					}
				})
			})
		}
	}
}

// TestUpstreamForgetsAcknowledged shows that raft 1.8.0, with a monotonic log store, deletes entries that
// it acknowledged and that agree with the leader's.
func TestUpstreamForgetsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := follow(t, "wal", false, 30)
		defer m.stop()
		l.snapshot(20, 1, wordsOf(2, 20, 1))
		m.requireLog(0, 0)
	})
}

// TestConflict: a snapshot whose last entry the follower has otherwise, or not at all, replaces its log,
// wherever that ends.
func TestConflict(t *testing.T) {
	for store := range logStores {
		for name, last := range map[string]uint64{"log longer": 30, "log as long": 20, "log shorter": 10, "longer by one": 21} {
			for _, restart := range []bool{false, true} {
				if restart {
					name += ", restart"
				}
				t.Run(store+"/"+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { conflict(t, store, last, restart) })
				})
			}
		}
	}
}

func conflict(t *testing.T, store string, last uint64, restart bool) {
	m, l := follow(t, store, true, last)
	defer func() { m.stop() }()
	l.snapshot(20, 2, wordsOf(2, 20, 2))
	if restart {
		m.stop()
		m.start(m.patient())
	}
	require.True(t, l.appendAfter(2, 20, 2, 0), "nothing to append yet")
	require.True(t, l.appendAfter(2, 20, 2, 40, entries(21, 23, 2)...))
	synctest.Wait()
	require.Equal(t, wordsOf(2, 23, 2), m.words.all(), "not what was there before")
	m.requireLog(21, 23)
	require.True(t, l.appendAfter(2, 23, 2, 24, entries(24, 24, 2)...))
	m.stop()
	m.start(m.patient())
	require.True(t, l.appendAfter(2, 24, 2, 24))
	synctest.Wait()
	require.Equal(t, wordsOf(2, 24, 2), m.words.all())
	require.Equal(t, 1, m.installed())
}

// TestCommitIsOfTheAppend: entries that conflict and were not looked at yet are not applied because
// the leader has committed others of these indexes.
func TestCommitIsOfTheAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := follow(t, "wal", true, 30)
		defer m.stop()
		l.snapshot(20, 2, wordsOf(2, 20, 2))
		require.True(t, l.appendAfter(2, 20, 2, 25))
		synctest.Wait()
		require.Equal(t, wordsOf(2, 20, 2), m.words.all())
	})
}

// TestNothingNew: a snapshot of what the follower has is a heartbeat, and deletes nothing.
func TestNothingNew(t *testing.T) {
	for store := range logStores {
		t.Run(store, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, l := follow(t, store, true, 30)
				defer m.stop()
				l.snapshot(20, 1, wordsOf(2, 20, 1))
				require.Zero(t, m.installed())
				m.requireLog(1, 30)
				require.Empty(t, m.words.all(), "nothing is known to be committed")
				require.True(t, l.appendAfter(2, 30, 1, 30))
				synctest.Wait()
				require.Equal(t, wordsOf(2, 30, 1), m.words.all())

				require.NoError(t, m.raft.Snapshot().Error())
				m.requireLog(20, 30)
				l.snapshot(15, 1, wordsOf(2, 15, 1)) // below the log
				require.Zero(t, m.installed())
				require.True(t, l.appendAfter(2, 30, 1, 31, entries(31, 31, 2)...))
				synctest.Wait()
				require.Equal(t, append(wordsOf(2, 30, 1), word(31, 2)), m.words.all())
			})
		})
	}
}

// TestConflictBehindOwnSnapshot: a follower that has a snapshot of its own, and behind it more entries that
// conflict than stay in the log, takes what follows the snapshot.
func TestConflictBehindOwnSnapshot(t *testing.T) {
	for store := range logStores {
		t.Run(store, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, l := follow(t, store, true, 40)
				defer m.stop()
				require.True(t, l.appendAfter(1, 20, 1, 20))
				synctest.Wait()
				require.NoError(t, m.raft.Snapshot().Error())
				m.requireLog(20, 40)
				require.False(t, l.appendAfter(2, 23, 2, 23), "the leader tries further back")
				require.True(t, l.appendAfter(2, 20, 1, 23, entries(21, 23, 2)...))
				synctest.Wait()
				require.Equal(t, append(wordsOf(2, 20, 1), wordsOf(21, 23, 2)...), m.words.all())
			})
		})
	}
}

// TestOldTerm: also as a heartbeat, a snapshot of a leader that was replaced is not accepted.
func TestOldTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := follow(t, "wal", true, 30)
		defer m.stop()
		require.True(t, l.appendAfter(5, 30, 1, 0))
		var resp raft.InstallSnapshotResponse
		data := encoded(nil)
		require.NoError(t, l.trans.InstallSnapshot("b", "b", &raft.InstallSnapshotRequest{
			RPCHeader: l.header(), SnapshotVersion: 1, Term: 2, LastLogIndex: 20, LastLogTerm: 1, Size: int64(data.Len()),
		}, &resp, data))
		require.False(t, resp.Success)
		require.Equal(t, uint64(5), resp.Term)
		require.Zero(t, data.Len(), "what was sent is read")
	})
}

// TestFit: New repairs what a crash left between a snapshot and the log.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last uint64
		term        uint64
		want        []uint64
		err         error
	}{
		{"no log", 0, 0, 0, []uint64{0, 0}, nil},
		{"shorter", 1, 19, 1, []uint64{0, 0}, nil},
		{"conflict at the end", 1, 20, 1, []uint64{0, 0}, nil},
		{"conflict", 1, 30, 1, []uint64{0, 0}, nil},
		{"agrees", 1, 30, 2, []uint64{1, 30}, nil},
		{"continues", 21, 30, 2, []uint64{21, 30}, nil},
		{"gap", 22, 30, 2, []uint64{22, 30}, ErrGap},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, closeLog := logStores["wal"](t, t.TempDir())
			defer func() { require.NoError(t, closeLog()) }()
			if c.last > 0 {
				require.NoError(t, log.StoreLogs(entries(c.first, c.last, c.term)))
			}
			snapshots := raft.NewInmemSnapshotStore()
			_, trans := raft.NewInmemTransport("b")
			sink, err := snapshots.Create(1, 20, 2, servers, 1, trans)
			require.NoError(t, err)
			require.NoError(t, sink.Close())
			_, err = New(log, snapshots, keepNothing, slog.Default())
			require.ErrorIs(t, err, c.err)
			m := &member{t: t, log: log}
			m.requireLog(c.want[0], c.want[1])
		})
	}
}
