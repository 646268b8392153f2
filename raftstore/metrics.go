package raftstore

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"kontiki/mvcc"
)

// counters count what happened since the member was opened.
type counters struct {
	applied        fsmMeter
	leaderChanges  atomic.Int64
	hashChecks     atomic.Int64 // comparisons of all members' content
	hashMismatches atomic.Int64 // members that were found to differ
}

// observeLeaders counts changes of leader, and tells the forwarder. The filter does all the work, so nothing ever waits
// for an observer.
func (m *Member) observeLeaders() {
	m.raft.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if l, ok := o.Data.(raft.LeaderObservation); ok && l.LeaderID != "" {
			m.counters.leaderChanges.Add(1)
			m.forwarder.leaderIs(string(l.LeaderAddr))
		}
		return false
	}))
}

// Collector returns the member's metrics for Prometheus. What etcd has as well is called as in etcd, so that
// its dashboards and alerts work; the rest begins with kontiki_store_. docs/metrics.md lists them.
func (m *Member) Collector() prometheus.Collector { return collector{m} }

type collector struct {
	m *Member
}

// metric is one number of a member.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*Member, *Status) float64
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// status is a metric that comes from Status.
func status[N int | int64 | uint64](kind prometheus.ValueType, name, help string, value func(*Status) N) metric {
	return metric{describe(name, help), kind, func(_ *Member, s *Status) float64 { return float64(value(s)) }}
}

// counter is a metric that comes from a meter.
func counter(name, help string, value func(*Member) *atomic.Int64) metric {
	return metric{describe(name, help), prometheus.CounterValue, func(m *Member, _ *Status) float64 { return float64(value(m).Load()) }}
}

const (
	gaugeKind   = prometheus.GaugeValue
	counterKind = prometheus.CounterValue
)

// metrics are those without labels.
var metrics = []metric{
	status(gaugeKind, "etcd_server_has_leader", "Whether a leader is known.", func(s *Status) int { return number(s.Leader.ID != "") }),
	status(gaugeKind, "etcd_server_is_leader", "Whether this member leads.", func(s *Status) int { return number(s.Leader.ID == s.NodeID) }),
	counter("etcd_server_leader_changes_seen_total", "Times that a member became leader, as seen here.", func(m *Member) *atomic.Int64 { return &m.counters.leaderChanges }),
	status(gaugeKind, "etcd_server_quota_backend_bytes", "Size at which the alarm NOSPACE is raised.", func(s *Status) int64 { return s.QuotaBytes }),
	status(counterKind, "etcd_server_proposals_committed_total", "Raft commit index.", func(s *Status) uint64 { return s.CommitIndex }),
	status(counterKind, "etcd_server_proposals_applied_total", "Raft index that was applied.", func(s *Status) uint64 { return s.Store.Applied }),
	{describe("etcd_server_proposals_pending", "Proposals that wait for their outcome, on the leader."), gaugeKind,
		func(m *Member, _ *Status) float64 { return float64(m.proposer.meter.pending.Load()) }},
	counter("etcd_server_proposals_failed_total", "Proposals that raft did not commit, or cannot say so of.", func(m *Member) *atomic.Int64 { return &m.proposer.meter.failed }),
	counter("etcd_disk_wal_write_bytes_total", "Bytes appended to the raft log.", func(m *Member) *atomic.Int64 { return &m.log.appends.bytes }),
	status(gaugeKind, "etcd_mvcc_db_total_size_in_bytes", "Size of the mvcc file.", func(s *Status) int64 { return s.Store.FileBytes }),
	status(gaugeKind, "etcd_mvcc_db_total_size_in_use_in_bytes", "Size of the mvcc file without free pages.", func(s *Status) int64 { return s.Store.InUseBytes }),
	status(gaugeKind, "etcd_debugging_mvcc_current_revision", "Newest revision.", func(s *Status) int64 { return s.Store.Revision }),
	status(gaugeKind, "etcd_debugging_mvcc_compact_revision", "Newest compacted revision.", func(s *Status) int64 { return s.Store.Compacted }),
	status(gaugeKind, "etcd_debugging_mvcc_keys_total", "Keys in the index, deleted ones included until they are compacted.", func(s *Status) int { return s.Store.Keys }),
	status(gaugeKind, "etcd_debugging_mvcc_watcher_total", "Watches on this member.", func(s *Status) int { return s.Store.Watchers }),
	status(gaugeKind, "etcd_debugging_mvcc_slow_watcher_total", "Watches whose receiver leaves events lying while more have come.", func(s *Status) int { return s.Store.SlowWatchers }),
	counter("etcd_debugging_mvcc_events_total", "Events handed to watches.", func(m *Member) *atomic.Int64 { return &m.store.Counts().Events }),
	counter("etcd_debugging_mvcc_db_compaction_keys_total", "Versions of keys that were removed from the mvcc file after compactions.", func(m *Member) *atomic.Int64 { return &m.store.Counts().SweptKeys }),
	counter("etcd_debugging_lease_granted_total", "Leases granted.", func(m *Member) *atomic.Int64 { return &m.counters.applied.granted }),
	counter("etcd_debugging_lease_revoked_total", "Leases revoked, those whose time was up included.", func(m *Member) *atomic.Int64 { return &m.counters.applied.revoked }),
	status(gaugeKind, "kontiki_store_leases", "Leases that exist.", func(s *Status) int { return s.Store.Leases }),
	status(gaugeKind, "kontiki_store_term", "Raft term.", func(s *Status) uint64 { return s.Term }),
	status(gaugeKind, "kontiki_store_durable_index", "Raft index up to which the mvcc file is complete.", func(s *Status) uint64 { return s.Store.Durable }),
	status(gaugeKind, "kontiki_store_pending_bytes", "Memory held by changes that are not in the mvcc file yet.", func(s *Status) int { return s.Store.PendingBytes }),
	status(gaugeKind, "kontiki_store_free_bytes", "Free pages of the mvcc file; defragmentation gives them back to the disk.", func(s *Status) int64 { return s.Store.FileBytes - s.Store.InUseBytes }),
	status(gaugeKind, "kontiki_store_log_size_bytes", "Size of the raft log's files.", func(s *Status) int64 { return s.LogBytes }),
	status(gaugeKind, "kontiki_store_log_entries", "Entries in the raft log.", func(s *Status) uint64 { return s.LastIndex + 1 - s.FirstIndex }),
	status(gaugeKind, "kontiki_store_compaction_timestamp_seconds", "When this member, leading, last compacted by age; 0 if it did not yet.", func(s *Status) int64 { return max(s.Compaction.At.Unix(), 0) }),
	status(gaugeKind, "kontiki_store_compaction_failing", "Whether this member's last attempt to compact by age failed.", func(s *Status) int { return number(s.Compaction.Err != "") }),
	status(gaugeKind, "kontiki_store_snapshots_sending", "Snapshots on their way to other members.", func(s *Status) int { return len(s.Sending) }),
	counter("kontiki_store_snapshot_send_failures_total", "Snapshots that did not arrive at another member.", func(m *Member) *atomic.Int64 { return &m.transport.sending.meter.failed }),
	counter("kontiki_store_hash_checks_total", "Comparisons of all members' content by this member.", func(m *Member) *atomic.Int64 { return &m.counters.hashChecks }),
	counter("kontiki_store_hash_mismatches_total", "Members that differed in a comparison.", func(m *Member) *atomic.Int64 { return &m.counters.hashMismatches }),
}

// histograms of the member; where they are made says what they are called.
func (m *Member) histograms() []mvcc.Durations {
	store := m.store.Counts()
	return []mvcc.Durations{
		m.log.appends.took, store.Commits, store.Defrags, m.counters.applied.took, m.proposer.meter.took, store.Sweeps,
		m.transport.sending.meter.took, store.Restores,
	}
}

var alarmOn = describe("kontiki_store_alarm", "1 for each alarm that is on.", "kind", "member")

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.desc
	}
	for _, h := range c.m.histograms() {
		h.Describe(out)
	}
	out <- alarmOn
}

// Collect implements prometheus.Collector. A member that is closed has no metrics.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s, err := c.m.Status()
	if err != nil {
		return
	}
	for _, m := range metrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(c.m, &s))
	}
	for _, h := range c.m.histograms() {
		h.Collect(out)
	}
	for _, a := range s.Alarms {
		out <- prometheus.MustNewConstMetric(alarmOn, prometheus.GaugeValue, 1, a.Kind, a.MemberID)
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
