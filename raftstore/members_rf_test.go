package raftstore

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTwoOfThree_RF04: with one member down, the leader loses sight of the other for a second, over and over. There is a
// leader again within five seconds each time.
func TestTwoOfThree_RF04(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		c.stop("c")
		for range 50 {
			leader := c.leader("a", "b")
			c.network.Partition([]string{leader.cfg.NodeID})
			time.Sleep(time.Second)
			c.network.Heal()
			begin := time.Now()
			c.put(c.members["a"], "k")
			require.Less(t, time.Since(begin), 5*time.Second)
		}
	})
}

// TestColdStart_RF12: after kill -9 of everything, any two members in any order serve, as soon as the second is up.
func TestColdStart_RF12(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		for _, order := range []string{"abc", "acb", "bac", "bca", "cab", "cba"} {
			c.put(c.members["a"], order)
			for _, name := range names {
				c.kill(name)
			}
			first, second, third := order[:1], order[1:2], order[2:]
			c.start(first)
			time.Sleep(time.Minute)
			c.start(second)
			begin := time.Now()
			c.put(c.members[first], "two")
			require.Less(t, time.Since(begin), 10*time.Second)
			time.Sleep(time.Minute)
			c.start(third)
			c.same()
		}
	})
}

// TestLogIsHeld_RF09: the log behind a snapshot that is being sent stays, whatever snapshots are taken meanwhile, and for a while
// longer; but not at any price.
func TestLogIsHeld_RF09(t *testing.T) {
	for _, logBytes := range []int64{16 << 20, 1} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			m := openMember(t, Config{Dir: dir, NodeID: "a", Bootstrap: true, SnapshotEntries: 20, LogSegmentBytes: 1 << 20, LogBytes: logBytes})
			defer func() { require.NoError(t, m.Close()) }()
			writeAndSnapshot := func() (first uint64) {
				for i := range 100 {
					_, err := m.Txn(t.Context(), putTxn("k", fmt.Sprint(i)))
					require.NoError(t, err)
				}
				require.NoError(t, m.raft.Snapshot().Error())
				first, err := m.log.FirstIndex()
				require.NoError(t, err)
				return first
			}
			writeAndSnapshot()
			sent, err := m.newestSnapshot()
			require.NoError(t, err)
			x := m.transport.sending.begin("b", sent.Index, 1000)
			if logBytes == 1 {
				require.Greater(t, writeAndSnapshot(), sent.Index, "the log is larger than it may become")
				return
			}
			for range 3 {
				time.Sleep(heldAfter)
				require.LessOrEqual(t, writeAndSnapshot(), sent.Index)
			}
			m.transport.sending.end(x)
			time.Sleep(heldAfter - time.Second)
			require.LessOrEqual(t, writeAndSnapshot(), sent.Index)
			time.Sleep(2 * time.Second)
			require.Greater(t, writeAndSnapshot(), sent.Index)
		})
	}
}

// TestSnapshotUnderLoad_RF09: a member that is far behind catches up while writes go on that are large enough for the log
// to be cut by bytes, again and again, behind the snapshot that it is sent.
func TestSnapshotUnderLoad_RF09(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.LogBytes = 1 << 20 })
		defer c.close()
		leader := c.leader(names...)
		away := c.others(leader)[0]
		value := strings.Repeat("v", 100_000)
		write := func(n int) {
			for i := range n {
				res, err := leader.Txn(t.Context(), putTxn(fmt.Sprint("k", i%20), value))
				require.NoError(t, err)
				if i%10 == 0 { // else the store grows, and the log may then be as large: TestLogIsBoundedInBytes
					require.NoError(t, leader.Compact(t.Context(), res.Revision))
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		had := c.members[away].raft.LastIndex()
		c.kill(away)
		write(100)
		st, err := leader.Status()
		require.NoError(t, err)
		require.NotNil(t, st.Snapshot, "taken because of bytes: there are few entries")
		require.Greater(t, st.FirstIndex, had+1, "the log does not reach back to what the member has")
		c.start(away)
		write(100)
		require.NoError(t, c.members[away].WaitReady(t.Context()))
		c.same()
		require.Empty(t, leader.transport.sending.list())
	})
}

// TestLogIsBoundedInBytes: the log has at most half of Config.LogBytes behind a snapshot, and after it the other half or as
// much as the store had, and what is written between two looks; however often the member is started again.
func TestLogIsBoundedInBytes(t *testing.T) {
	const logBytes, valueBytes, perLook = 1 << 20, 20_000, int(logBytesInterval / (100 * time.Millisecond))
	for name, of := range map[string]struct{ keys, restart, between int }{ // writes until a restart, writes between two looks
		"small store":              {keys: 1, between: perLook},
		"large store":              {keys: 40, between: perLook},
		"small store and restarts": {keys: 1, restart: 15, between: 15}, // it looks once in each life
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Dir: dir, NodeID: "a", Bootstrap: true, LogBytes: logBytes, LogSegmentBytes: 64 << 10}
			m := openMember(t, cfg)
			defer func() { require.NoError(t, m.Close()) }()
			var store int64 // the most that it had
			for i := range 150 {
				if of.restart > 0 && i%of.restart == 0 {
					require.NoError(t, m.Close())
					m = openMember(t, cfg)
				}
				res, err := m.Txn(t.Context(), putTxn(fmt.Sprint("k", i%of.keys), strings.Repeat("v", valueBytes)))
				require.NoError(t, err)
				require.NoError(t, m.Compact(t.Context(), res.Revision))
				time.Sleep(100 * time.Millisecond)
				st, err := m.Status()
				require.NoError(t, err)
				store = max(store, st.Store.InUseBytes)
				values := int(st.LastIndex-st.FirstIndex+1) / 2 // every other entry compacts
				require.LessOrEqual(t, values*valueBytes, logBytes/2+max(logBytes/2, int(store))+(of.between+1)*valueBytes, "%s, after %d", name, i)
			}
		})
	}
}
