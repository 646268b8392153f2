package raftstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

func isUnknown(err error) bool { return errors.Is(err, ErrUnknownOutcome) }

// TestPartition cuts the leader off, twice, while every member is written to. What was acknowledged
// is there afterwards, with the revision it was acknowledged with; what was refused is not; and the
// members are the same.
func TestPartition(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		ctx, cancel := context.WithCancel(t.Context())
		var writers []*writer
		var group sync.WaitGroup
		for i := range 6 {
			w := &writer{name: fmt.Sprint("w", i)}
			writers = append(writers, w)
			through := []*Member{c.members[names[i%3]]}
			if i >= 3 {
				through = append(through, c.members["a"], c.members["b"], c.members["c"])
			}
			group.Go(func() { w.run(ctx, through) })
		}
		for range 2 {
			time.Sleep(time.Second)
			old := c.leader(names...)
			term := old.raft.CurrentTerm()
			c.network.Partition([]string{old.cfg.NodeID})
			next := c.leader(c.others(old)...)
			require.Greater(t, next.raft.CurrentTerm(), term)
			time.Sleep(2 * time.Second)
			c.network.Heal()
			time.Sleep(2 * time.Second)
		}
		cancel()
		group.Wait()
		c.same()
		for _, w := range writers {
			require.NotEmpty(t, w.acks)
			w.check(t, c.members["a"])
		}
	})
}

// TestKill takes members down as kill -9 would, the leader too, and starts them again.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		for round := range 4 {
			w := &writer{name: fmt.Sprint("w", round)}
			victim := c.members[names[round%3]]
			if round == 3 {
				victim = c.leader(names...)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() { w.run(ctx, []*Member{c.members[c.others(victim)[0]]}) })
			time.Sleep(500 * time.Millisecond)
			c.kill(victim.cfg.NodeID)
			time.Sleep(3 * time.Second)
			c.start(victim.cfg.NodeID)
			time.Sleep(3 * time.Second)
			cancel()
			group.Wait()
			c.same()
			w.check(t, c.members[victim.cfg.NodeID])
		}
	})
}

// TestReadsSeeWhatWasAcknowledged: a write through one member is seen by a read through any other.
func TestReadsSeeWhatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		for i := range 60 {
			at, from := c.members[names[i%3]], c.members[names[(i/3)%3]]
			value := fmt.Sprint(i)
			res, err := at.Txn(t.Context(), putTxn("k", value))
			require.NoError(t, err)
			got, err := from.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
			require.NoError(t, err)
			require.Equal(t, value, string(got.KVs[0].Value))
			rev, err := from.Revision(t.Context())
			require.NoError(t, err)
			require.GreaterOrEqual(t, rev, res.Revision)
			old, err := at.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k"), Revision: res.Revision})
			require.NoError(t, err, "a revision that another member acknowledged is no future one")
			require.Len(t, old.KVs, 1)
		}
	})
}

// TestDeposedLeaderDoesNotAnswerReads: cut off, a leader that does not know it yet must not answer.
func TestDeposedLeaderDoesNotAnswerReads(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		old := c.leader(names...)
		_, err := old.Txn(t.Context(), putTxn("k", "old"))
		require.NoError(t, err)
		c.network.Partition([]string{old.cfg.NodeID})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = old.Range(ctx, mvcc.RangeRequest{Key: []byte("k")})
		require.Error(t, err)
		res, err := old.Range(ctx, mvcc.RangeRequest{Key: []byte("k"), Revision: 2})
		require.NoError(t, err, "history needs nobody")
		require.Equal(t, "old", string(res.KVs[0].Value))
		c.network.Heal()
		c.same()
	})
}

func TestUnknownOutcome(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		old := c.leader(names...)
		c.network.Partition([]string{old.cfg.NodeID})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := old.Txn(ctx, putTxn("k", "v"))
		require.ErrorIs(t, err, ErrUnknownOutcome, "raft has it, and may yet find a majority")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = old.Txn(t.Context(), putTxn("l", "v"))
		require.ErrorIs(t, err, ErrUnknownOutcome, "leadership was lost with it in the log")
		c.leader(c.others(old)...)
		c.network.Heal()
		c.same()
	})
}

func TestWithoutQuorum_RF13(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		_, err := c.members["a"].Txn(t.Context(), putTxn("k", "v"))
		require.NoError(t, err)
		c.ready()
		c.stop("b")
		c.stop("c")
		time.Sleep(5 * time.Second) // a leader without followers has noticed
		begin := time.Now()
		_, err = c.members["a"].Txn(t.Context(), putTxn("k", "w"))
		require.ErrorIs(t, err, ErrNoLeader)
		require.Less(t, time.Since(begin), 10*time.Second)
		_, err = c.members["a"].Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
		require.ErrorIs(t, err, ErrNoLeader)
		res, err := c.members["a"].Range(t.Context(), mvcc.RangeRequest{Key: []byte("k"), Revision: 2})
		require.NoError(t, err)
		require.Equal(t, "v", string(res.KVs[0].Value))
		c.start("b") // any two are enough
		_, err = c.members["a"].Txn(t.Context(), putTxn("k", "w"))
		require.NoError(t, err)
	})
}

// TestCloseHandsOver: after a clean stop of the leader the others go on without an election timeout.
func TestCloseHandsOver(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		old := c.leader(names...)
		c.stop(old.cfg.NodeID)
		begin := time.Now()
		_, err := c.members[c.others(old)[0]].Txn(t.Context(), putTxn("k", "v"))
		require.NoError(t, err)
		require.Less(t, time.Since(begin), heartbeatTimeout)
	})
}

// TestSnapshotToFollower_RF03: a member that was away for longer than the log reaches back gets a
// snapshot, and afterwards has nothing of its old log left that could conflict (transport.go,
// logstore.go on hashicorp/raft issue 697).
func TestSnapshotToFollower_RF03(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.SnapshotEntries = 20 })
		defer c.close()
		leader := c.leader(names...)
		away := c.members[c.others(leader)[0]]
		out := away.Watch(t.Context(), mvcc.WatchRequest{Key: []byte("k"), StartRevision: 2})
		_, err := leader.Txn(t.Context(), putTxn("k", "first"))
		require.NoError(t, err)
		require.Len(t, (<-out).Events, 1)

		c.network.Partition([]string{away.cfg.NodeID})
		for i := range 200 {
			_, err := leader.Txn(t.Context(), putTxn("k", fmt.Sprint(i)))
			require.NoError(t, err)
		}
		require.NoError(t, leader.raft.Snapshot().Error())
		first, err := leader.log.FirstIndex()
		require.NoError(t, err)
		require.Greater(t, first, away.raft.LastIndex(), "the log does not reach back")
		term, healed := leader.raft.CurrentTerm(), time.Now()
		c.network.Heal()
		for range 200 { // a second under load
			_, err := leader.Txn(t.Context(), putTxn("k", "load"))
			require.NoError(t, err)
			time.Sleep(5 * time.Millisecond)
		}
		require.NoError(t, away.WaitReady(t.Context()))
		require.Less(t, time.Since(healed), 60*time.Second)
		require.LessOrEqual(t, leader.raft.CurrentTerm(), term+2, "no storm of elections")
		c.same()
		first, err = away.log.FirstIndex()
		require.NoError(t, err)
		require.True(t, first == 0 || first >= 200, "the old log is gone")

		next := int64(3) // the watch goes on through the snapshot
		for next <= 402 {
			for _, e := range (<-out).Events {
				require.Equal(t, next, e.KV.ModRevision)
				next++
			}
		}
		c.kill(away.cfg.NodeID)
		c.start(away.cfg.NodeID)
		c.same()
	})
}

// TestStoreBehindSnapshot: a member whose mvcc file is gone, or was not yet replaced by the snapshot that
// it has received, starts from the snapshot.
func TestStoreBehindSnapshot(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true, SnapshotEntries: 5}
	m := openMember(t, cfg)
	for i := range 50 {
		_, err := m.Txn(t.Context(), putTxn("k", fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.NoError(t, m.raft.Snapshot().Error())
	_, err := m.Txn(t.Context(), putTxn("k", "last"))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, removeStore(cfg.Dir))
	partial := filepath.Join(cfg.Dir, "snapshots", "3-50-1.tmp")
	require.NoError(t, os.Mkdir(partial, 0o700))

	m = openMember(t, cfg)
	defer func() { require.NoError(t, m.Close()) }()
	got, err := m.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
	require.NoError(t, err)
	require.Equal(t, "last", string(got.KVs[0].Value))
	require.EqualValues(t, 52, got.Revision)
	require.NoDirExists(t, partial)
}

// TestHeartbeatsGoThroughMainLoop pins the remedy for hashicorp/raft issue 695 (see transport.go).
func TestHeartbeatsGoThroughMainLoop(t *testing.T) {
	n := NewMemoryNetwork()
	var ends []transport
	for _, name := range []string{"a", "b"} {
		m := newMux(n.Join(name), anyone, nil)
		tr := newTransport(m, Config{Log: quiet()}, nil, nil)
		defer func() {
			tr.CloseStreams()
			require.NoError(t, errors.Join(tr.Close(), m.close()))
		}()
		ends = append(ends, tr)
	}
	ends[1].SetHeartbeatHandler(func(raft.RPC) { t.Error("a heartbeat took the fast path") })
	go func() {
		rpc := <-ends[1].Consumer()
		rpc.Respond(&raft.AppendEntriesResponse{Term: 7}, nil)
	}()
	heartbeat := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, Addr: []byte("a")}, Term: 7}
	var resp raft.AppendEntriesResponse
	require.NoError(t, ends[0].AppendEntries("b", "b", heartbeat, &resp))
	require.EqualValues(t, 7, resp.Term)
}
