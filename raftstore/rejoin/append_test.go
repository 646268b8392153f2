package rejoin

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestUpstreamForgetsItsEnd shows what raft 1.8.0 does without the guard when a disk is full right after a conflict
// was truncated: the follower refuses everything once the disk has room again, but for entries behind a hole.
func TestUpstreamForgetsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := follow(t, "boltdb", false, 30)
		defer m.stop()
		m.full.Store(true)
		require.False(t, l.appendAfter(2, 20, 1, 20, entries(21, 25, 2)...))
		m.full.Store(false)
		m.requireLog(1, 20)
		for range 3 {
			require.False(t, l.appendAfter(2, 20, 1, 20, entries(21, 25, 2)...))
		}
		require.True(t, l.appendAfter(3, 30, 1, 20, entries(31, 31, 3)...), "as an old leader would say that leads again")
		require.ErrorIs(t, m.log.GetLog(30, &raft.Log{}), raft.ErrLogNotFound)
	})
}

// TestFullDiskAfterTruncation: with the guard the follower goes on when there is room, and says nothing before.
func TestFullDiskAfterTruncation(t *testing.T) {
	for store := range logStores {
		t.Run(store, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, l := follow(t, store, true, 30)
				defer m.stop()
				m.full.Store(true)
				require.Error(t, l.tryAfter(2, 20, 1, entries(21, 25, 2)), "no answer")
				require.Error(t, l.tryAfter(3, 30, 1, entries(31, 31, 3)), "nor to another leader")
				m.requireLog(1, 20)
				m.full.Store(false)
				time.Sleep(2 * appendRetry)
				m.requireLog(1, 25)
				require.False(t, l.appendAfter(3, 30, 1, 20, entries(31, 31, 3)...), "it knows that its log ends at 25")
				require.True(t, l.appendAfter(3, 25, 2, 26, entries(26, 26, 3)...))
				synctest.Wait()
				require.Equal(t, append(append(wordsOf(2, 20, 1), wordsOf(21, 25, 2)...), word(26, 3)), m.words.all())
				require.NoError(t, m.raft.Snapshot().Error())
				require.True(t, l.appendAfter(3, 26, 3, 27, entries(27, 27, 3)...))
			})
		})
	}
}

// TestStopOnAFullDisk: a follower that waits for its disk can be stopped, and has what it had when it is started again.
func TestStopOnAFullDisk(t *testing.T) {
	for store := range logStores {
		t.Run(store, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, l := follow(t, store, true, 30)
				defer func() { m.stop() }()
				m.full.Store(true)
				require.Error(t, l.tryAfter(2, 20, 1, entries(21, 25, 2)))
				m.stop()
				m.full.Store(false)
				m.start(m.patient())
				m.requireLog(1, 20)
				require.True(t, l.appendAfter(2, 20, 1, 25, entries(21, 25, 2)...))
			})
		})
	}
}

// TestFullDiskWithoutTruncation: the leader hears at once of entries that the disk does not take, and sends them again.
func TestFullDiskWithoutTruncation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := follow(t, "wal", true, 30)
		defer m.stop()
		m.full.Store(true)
		require.False(t, l.appendAfter(2, 30, 1, 30, entries(31, 35, 2)...))
		m.full.Store(false)
		require.True(t, l.appendAfter(2, 30, 1, 35, entries(31, 35, 2)...))
	})
}
