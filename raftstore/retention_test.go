package raftstore

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

func TestMarks(t *testing.T) {
	r := &retention{keep: time.Hour}
	require.Equal(t, 3*time.Minute, r.interval())
	start := time.Now()
	for i := range int64(100) {
		now := start.Add(time.Duration(i) * 3 * time.Minute)
		r.note(now, 10+min(i, 50)) // nothing is written after the fiftieth
		switch due := r.due(now); {
		case i < 20:
			require.Zero(t, due)
		default:
			require.Equal(t, 10+min(i-20, 50), due)
		}
		require.LessOrEqual(t, len(r.marks), marksPerRetention+1)
	}
	require.Len(t, r.marks, 1)
}

// TestHistoryIsKeptForAWhile_KV18: the leader compacts what is older than the retention; when it is cut
// off as a compaction is due, when leaders change, when members restart, it goes on by itself.
func TestHistoryIsKeptForAWhile_KV18(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.HistoryRetention = time.Minute })
		defer c.close()
		at := map[int64]time.Time{}
		write := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				res, err := c.members["a"].Txn(ctx, putTxn("k", "v"))
				cancel()
				if err == nil {
					at[res.Revision] = time.Now()
				}
			}
		}
		// check: what is readable is a minute of history, and not much more.
		check := func(tolerance time.Duration) {
			t.Helper()
			require.NoError(t, c.members["a"].WaitReady(t.Context()))
			st, err := c.members["a"].Status()
			require.NoError(t, err)
			require.Contains(t, at, st.Store.Compacted, "something was compacted")
			_, err = c.members["a"].Range(t.Context(), mvcc.RangeRequest{Key: []byte("k"), Revision: st.Store.Compacted})
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(at[st.Store.Compacted]), time.Minute, "what is gone was replaced before that")
			require.Less(t, time.Since(at[st.Store.Compacted+1]), time.Minute+tolerance)
		}
		write(50 * time.Second)
		st, err := c.members["a"].Status()
		require.NoError(t, err)
		require.Zero(t, st.Store.Compacted, "not a minute old")
		write(100 * time.Second)
		check(10 * time.Second)
		leader := c.leader(names...)
		require.NotZero(t, leader.retention.status().Revision)

		c.network.Partition([]string{"a"}, []string{"b"}, []string{"c"})
		time.Sleep(30 * time.Second) // some attempts fail
		c.network.Heal()
		c.ready()
		write(20 * time.Second)
		check(10 * time.Second)

		next := c.leader(names...)
		c.stop(next.cfg.NodeID)
		time.Sleep(time.Second)
		c.start(next.cfg.NodeID)
		c.ready()
		write(20 * time.Second)
		check(10 * time.Second)

		for _, name := range names { // all of them: nobody has marks any more
			c.stop(name)
		}
		for _, name := range names {
			c.start(name)
		}
		c.ready()
		write(90 * time.Second)
		check(10 * time.Second)
		c.same()
	})
}

// TestMarksOutliveRestarts_KV18: a member that is restarted more often than its retention is long compacts all the same, and
// what it has kept is of the right age.
func TestMarksOutliveRestarts_KV18(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		at := map[int64]time.Time{}
		compacted := int64(0)
		for range 6 {
			m := openMember(t, Config{Dir: dir, NodeID: "a", Bootstrap: true, HistoryRetention: time.Minute})
			require.NoError(t, m.WaitReady(t.Context()))
			for range 25 { // seconds; a restart loses none
				res, err := m.Txn(t.Context(), putTxn("k", "v"))
				require.NoError(t, err)
				at[res.Revision] = time.Now()
				time.Sleep(time.Second)
			}
			st, err := m.Status()
			require.NoError(t, err)
			if compacted = st.Store.Compacted; compacted > 1 {
				require.GreaterOrEqual(t, time.Since(at[compacted]), time.Minute)
				require.Less(t, time.Since(at[compacted+1]), time.Minute+10*time.Second)
			}
			require.NoError(t, m.Close())
		}
		require.Greater(t, compacted, int64(50))
		require.NoError(t, os.WriteFile(filepath.Join(dir, marksFile), []byte("[{\"revision\":"), 0o600))
		m := openMember(t, Config{Dir: dir, NodeID: "a", Bootstrap: true, HistoryRetention: time.Minute})
		require.NoError(t, m.WaitReady(t.Context()), "damaged marks are as good as none")
		require.NoError(t, m.Close())
	})
}

func FuzzDecodeMarks(f *testing.F) {
	for _, seed := range []string{`[]`, `[{"revision":2,"ageMillis":5000},{"revision":3,"ageMillis":0}]`, `[{"revision":-2}]`, `{`, `null`} {
		f.Add([]byte(seed))
	}
	now := time.Now()
	f.Fuzz(func(t *testing.T, b []byte) {
		marks, err := decodeMarks(b, now, 100)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		for i, m := range marks {
			require.False(t, m.at.After(now))
			require.LessOrEqual(t, m.revision, int64(100))
			require.True(t, i == 0 || marks[i-1].revision < m.revision && !m.at.Before(marks[i-1].at))
		}
	})
}
