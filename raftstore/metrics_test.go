package raftstore

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// gather returns all metrics without labels: of a histogram the count.
func gather(t *testing.T, m *Member) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m.Collector()))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		x := f.Metric[0]
		values[f.GetName()] = x.GetGauge().GetValue() + x.GetCounter().GetValue() + float64(x.GetHistogram().GetSampleCount())
	}
	return values
}

// TestMetricsMove: after a member has done a bit of everything, each metric says so, and docs/metrics.md has it.
func TestMetricsMove(t *testing.T) {
	m := openMember(t, Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true, HashInterval: time.Millisecond})
	defer func() { require.NoError(t, m.Close()) }()
	before := gather(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := m.Watch(ctx, mvcc.WatchRequest{Key: []byte("k")})
	m.Watch(ctx, mvcc.WatchRequest{Key: []byte("k")}) // nobody reads this one
	for range 4 {
		_, err := m.Txn(t.Context(), putTxn("k", strings.Repeat("v", 50_000)))
		require.NoError(t, err)
		<-read
	}
	require.NoError(t, m.raise(t.Context(), Alarm{Kind: AlarmCorrupt, MemberID: "a"})) // tidyNotes ends those of others within a second
	for id := range int64(2) {
		_, err := m.GrantLease(t.Context(), id+1, 100)
		require.NoError(t, err)
	}
	_, err := m.RevokeLease(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, m.store.Sync())
	m.compactHistory(t.Context(), 4)
	require.Eventually(t, func() bool { st, err := m.store.Stats(); return err == nil && st.Swept == 4 }, time.Minute, time.Millisecond)
	require.NoError(t, m.Defragment(t.Context()))
	require.NoError(t, m.raft.Snapshot().Error())
	require.Eventually(t, func() bool { return m.counters.hashChecks.Load() > 0 }, time.Minute, time.Millisecond)
	after := gather(t, m)

	// What takes a second member, or a fault, is in the tests below and in those of the snapshots and alarms.
	still := map[string]bool{
		"etcd_server_quota_backend_bytes": true, "etcd_server_proposals_pending": true, "etcd_server_proposals_failed_total": true,
		"kontiki_store_pending_bytes": true, "kontiki_store_free_bytes": true, "kontiki_store_log_size_bytes": true,
		"kontiki_store_compaction_failing": true, "kontiki_store_snapshots_sending": true, "kontiki_store_snapshot_send_failures_total": true,
		"kontiki_store_snapshot_send_duration_seconds": true, "kontiki_store_snapshot_install_duration_seconds": true,
		"kontiki_store_hash_mismatches_total": true, "kontiki_store_term": true,
		"etcd_server_has_leader": true, "etcd_server_is_leader": true, "etcd_server_leader_changes_seen_total": true,
	}
	page, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	for name, value := range after {
		require.Contains(t, string(page), "`"+name+"`", "docs/metrics.md")
		if !still[name] {
			require.Greater(t, value, before[name], name)
		}
	}
	for name, want := range map[string]float64{
		"etcd_server_has_leader": 1, "etcd_server_is_leader": 1, "etcd_server_leader_changes_seen_total": 1,
		"etcd_debugging_mvcc_current_revision": 5, "etcd_debugging_mvcc_keys_total": 1, "etcd_debugging_mvcc_slow_watcher_total": 1,
		"etcd_debugging_lease_granted_total": 2, "etcd_debugging_lease_revoked_total": 1, "kontiki_store_leases": 1,
		"etcd_debugging_mvcc_compact_revision": 4, "etcd_debugging_mvcc_db_compaction_keys_total": 2,
		"etcd_disk_backend_defrag_duration_seconds": 1, "kontiki_store_sweep_duration_seconds": 1,
		"etcd_server_proposals_pending": 0, "kontiki_store_alarm": 1,
	} {
		require.Equal(t, want, after[name], name)
	}
}

// TestMetricsOfFaults: proposals without a quorum are pending and then have failed, a snapshot that is sent counts
// on both sides, and so does a change of leader.
func TestMetricsOfFaults(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.SnapshotEntries, cfg.RaftLog = 4, LogBoltDB })
		defer c.close()
		leader := c.leader(names...)
		changes := gather(t, leader)["etcd_server_leader_changes_seen_total"]
		require.Positive(t, gather(t, leader)["etcd_disk_wal_write_bytes_total"], "raft-boltdb is measured, too")
		c.network.Partition([]string{leader.cfg.NodeID}, c.others(leader))
		done := make(chan error)
		go func() {
			_, err := leader.Txn(t.Context(), putTxn("k", "v"))
			done <- err
		}()
		synctest.Wait()
		require.EqualValues(t, 1, gather(t, leader)["etcd_server_proposals_pending"])
		require.ErrorIs(t, <-done, ErrUnknownOutcome)
		require.Zero(t, gather(t, leader)["etcd_server_proposals_pending"])
		require.EqualValues(t, 1, gather(t, leader)["etcd_server_proposals_failed_total"])
		c.network.Heal()
		c.ready()
		require.Greater(t, gather(t, c.members["a"])["etcd_server_leader_changes_seen_total"], changes)

		leader = c.leader(names...)
		away := c.others(leader)[0]
		c.stop(away)
		for range 20 {
			c.put(leader, "k")
		}
		require.NoError(t, leader.raft.Snapshot().Error())
		c.start(away)
		c.ready()
		c.same()
		require.Positive(t, gather(t, leader)["kontiki_store_snapshot_send_duration_seconds"])
		require.Positive(t, gather(t, c.members[away])["kontiki_store_snapshot_install_duration_seconds"])
	})
}
