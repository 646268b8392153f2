package leaderlog

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// member is a standing that the test chooses, and a store that it can halt or make fail.
type member struct {
	raft.LogStore
	raft.ConfigurationFuture
	state  raft.RaftState
	voters int
	halt   chan struct{} // if not nil, a write waits until it is closed
	full   error
	writes [][]uint64
}

func (m *member) State() raft.RaftState                      { return m.state }
func (m *member) GetConfiguration() raft.ConfigurationFuture { return m }

func (m *member) Configuration() (c raft.Configuration) {
	for range m.voters {
		c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Voter})
	}
	c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Nonvoter})
	return c
}

func (m *member) StoreLogs(entries []*raft.Log) error {
	if m.halt != nil {
		<-m.halt
	}
	if m.full != nil {
		return m.full
	}
	var indexes []uint64
	for _, e := range entries {
		indexes = append(indexes, e.Index)
	}
	m.writes = append(m.writes, indexes)
	return m.LogStore.StoreLogs(entries)
}

var errFull = errors.New("no space")

// in runs a test in a bubble, with a leader of three and entry 1 on its disk.
func in(t *testing.T, test func(t *testing.T, m *member, l *Log)) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{LogStore: raft.NewInmemStore(), state: raft.Leader, voters: 3}
		l := New(m, slog.New(slog.DiscardHandler))
		require.NoError(t, l.StoreLogs(entries(1)))
		l.belongTo(m)
		test(t, m, l)
		l.Close()
	})
}

func entries(indexes ...uint64) (list []*raft.Log) {
	for _, i := range indexes {
		list = append(list, &raft.Log{Index: i, Term: 1, Data: []byte{byte(i)}})
	}
	return list
}

func requireLog(t *testing.T, l raft.LogStore, first, last uint64) {
	t.Helper()
	f, err := l.FirstIndex()
	require.NoError(t, err)
	n, err := l.LastIndex()
	require.NoError(t, err)
	require.Equal(t, []uint64{first, last}, []uint64{f, n}, "first and last index")
	for i := first; i <= last; i++ {
		var e raft.Log
		require.NoError(t, l.GetLog(i, &e))
		require.Equal(t, entries(i)[0], &e)
	}
}

// isDone says whether a call has returned.
func isDone(call func() error) func() bool {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return func() bool {
		synctest.Wait()
		return len(done) == 1
	}
}

// TestLeader: a leader need not wait for its disk, who asks Written must; what came during a write is written together.
func TestLeader(t *testing.T) {
	in(t, func(t *testing.T, m *member, l *Log) {
		m.halt = make(chan struct{})
		require.NoError(t, l.StoreLogs(entries(2)))
		synctest.Wait()
		require.NoError(t, l.StoreLogs(entries(3)))
		require.NoError(t, l.StoreLogs(entries(4, 5)))
		requireLog(t, l, 1, 5)
		requireLog(t, m, 1, 1)
		require.NoError(t, l.Written(1, nil))
		second := isDone(func() error { return l.Written(2, nil) })
		require.False(t, second())
		stop := make(chan struct{})
		close(stop)
		require.ErrorIs(t, l.Written(5, stop), raft.ErrPipelineShutdown)
		close(m.halt)
		require.True(t, second())
		require.NoError(t, l.Written(5, nil))
		requireLog(t, m, 1, 5)
		require.Equal(t, [][]uint64{{1}, {2}, {3, 4, 5}}, m.writes)
	})
}

// TestWritesFirst: what somebody takes for durable when StoreLogs returns is durable, and all before it.
func TestWritesFirst(t *testing.T) {
	for name, change := range map[string]func(*member, *raft.Log){
		"follower":      func(m *member, _ *raft.Log) { m.state = raft.Follower },
		"candidate":     func(m *member, _ *raft.Log) { m.state = raft.Candidate },
		"only voter":    func(m *member, _ *raft.Log) { m.voters = 1 },
		"configuration": func(_ *member, e *raft.Log) { e.Type = raft.LogConfiguration },
		"first of term": func(_ *member, e *raft.Log) { e.Type = raft.LogNoop },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, m *member, l *Log) {
				m.halt = make(chan struct{})
				require.NoError(t, l.StoreLogs(entries(2)))
				synctest.Wait()
				third := entries(3)
				change(m, third[0])
				stored := isDone(func() error { return l.StoreLogs(third) })
				require.False(t, stored())
				close(m.halt)
				require.True(t, stored())
				require.Equal(t, [][]uint64{{1}, {2}, {3}}, m.writes)
			})
		})
	}
}

// TestDeposed: a member that was deposed shows raft no entry that is not on its disk, and deletes none.
func TestDeposed(t *testing.T) {
	in(t, func(t *testing.T, m *member, l *Log) {
		m.halt = make(chan struct{})
		require.NoError(t, l.StoreLogs(entries(2, 3)))
		m.state = raft.Follower
		read := isDone(func() error { return l.GetLog(2, &raft.Log{}) })
		require.False(t, read())
		deleted := isDone(func() error { return l.DeleteRange(3, 3) })
		require.False(t, deleted())
		close(m.halt)
		require.True(t, read())
		require.True(t, deleted())
		requireLog(t, l, 1, 2)
	})
}

// TestFull: while the disk takes nothing, nothing is said to be written, and everything is tried again in order.
func TestFull(t *testing.T) {
	in(t, func(t *testing.T, m *member, l *Log) {
		m.full = errFull
		require.NoError(t, l.StoreLogs(entries(2)))
		require.ErrorIs(t, l.Written(2, nil), errFull)
		require.NoError(t, l.Written(1, nil))
		require.ErrorIs(t, l.StoreLogs(entries(3)), errFull, "now it is known")
		requireLog(t, l, 1, 2)
		m.state = raft.Follower
		require.ErrorIs(t, l.GetLog(2, &raft.Log{}), errFull)
		require.ErrorIs(t, l.DeleteRange(2, 2), errFull)
		require.NoError(t, l.GetLog(1, &raft.Log{}))
		m.full = nil
		require.NoError(t, l.StoreLogs(entries(3)))
		requireLog(t, m, 1, 3)
		require.NoError(t, l.Written(3, nil))
		m.state = raft.Leader
		require.NoError(t, l.StoreLogs(entries(4)))
		require.NoError(t, l.Written(4, nil))
		require.Equal(t, [][]uint64{{1}, {2}, {3}, {4}}, m.writes)
	})
}

// TestTailIsBounded: a leader whose disk lags too far behind waits for it.
func TestTailIsBounded(t *testing.T) {
	in(t, func(t *testing.T, m *member, l *Log) {
		m.halt = make(chan struct{})
		for i := range uint64(maxTail) {
			require.NoError(t, l.StoreLogs(entries(2+i)))
		}
		stored := isDone(func() error { return l.StoreLogs(entries(2 + maxTail)) })
		require.False(t, stored())
		close(m.halt)
		require.True(t, stored())
		requireLog(t, m, 1, 2+maxTail)
	})
}

// TestClose: what a leader was still writing is on disk afterwards.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{LogStore: raft.NewInmemStore(), state: raft.Leader, voters: 2}
		l := New(m, slog.New(slog.DiscardHandler))
		l.belongTo(m)
		require.NoError(t, l.StoreLogs(entries(1, 2)))
		l.Close()
		requireLog(t, m, 1, 2)
	})
}
