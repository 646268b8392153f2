package raftstore

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

// counters count what happened since the member was opened.
type counters struct {
	appliedBytes   atomic.Int64 // of entries
	leaderChanges  atomic.Int64
	hashChecks     atomic.Int64 // comparisons of all members' content
	hashMismatches atomic.Int64 // members that were found to differ
}

// observeLeaders counts changes of leader. The filter does all the work, so nothing ever waits for an observer.
func (m *Member) observeLeaders() {
	m.raft.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if l, ok := o.Data.(raft.LeaderObservation); ok && l.LeaderID != "" {
			m.counters.leaderChanges.Add(1)
		}
		return false
	}))
}

// Collector returns the member's metrics for Prometheus. What etcd has as well is called as in etcd, so that
// its dashboards and alerts work; the rest begins with kontiki_store_.
func (m *Member) Collector() prometheus.Collector { return collector{m} }

type collector struct {
	m *Member
}

// metric is one number of a member.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*Status) float64
}

func gauge(name, help string, value func(*Status) float64) metric {
	return metric{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, value}
}

func counter(name, help string, value func(*Status) float64) metric {
	return metric{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, value}
}

// statusMetrics are those that come from Status.
var statusMetrics = []metric{
	gauge("etcd_server_has_leader", "Whether a leader is known.", func(s *Status) float64 { return number(s.Leader.ID != "") }),
	gauge("etcd_server_is_leader", "Whether this member leads.", func(s *Status) float64 { return number(s.Leader.ID == s.NodeID) }),
	gauge("etcd_server_quota_backend_bytes", "Size at which the alarm NOSPACE is raised.", func(s *Status) float64 { return float64(s.QuotaBytes) }),
	counter("etcd_server_proposals_committed_total", "Raft commit index.", func(s *Status) float64 { return float64(s.CommitIndex) }),
	counter("etcd_server_proposals_applied_total", "Raft index that was applied.", func(s *Status) float64 { return float64(s.Store.Applied) }),
	gauge("etcd_mvcc_db_total_size_in_bytes", "Size of the mvcc file.", func(s *Status) float64 { return float64(s.Store.FileBytes) }),
	gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Size of the mvcc file without free pages.", func(s *Status) float64 { return float64(s.Store.InUseBytes) }),
	gauge("etcd_debugging_mvcc_current_revision", "Newest revision.", func(s *Status) float64 { return float64(s.Store.Revision) }),
	gauge("etcd_debugging_mvcc_compact_revision", "Newest compacted revision.", func(s *Status) float64 { return float64(s.Store.Compacted) }),
	gauge("etcd_debugging_mvcc_keys_total", "Keys in the index, deleted ones included until they are compacted.", func(s *Status) float64 { return float64(s.Store.Keys) }),
	gauge("etcd_debugging_mvcc_watcher_total", "Watches on this member.", func(s *Status) float64 { return float64(s.Store.Watchers) }),
	gauge("kontiki_store_leases", "Leases that exist.", func(s *Status) float64 { return float64(s.Store.Leases) }),
	gauge("kontiki_store_term", "Raft term.", func(s *Status) float64 { return float64(s.Term) }),
	gauge("kontiki_store_durable_index", "Raft index up to which the mvcc file is complete.", func(s *Status) float64 { return float64(s.Store.Durable) }),
	gauge("kontiki_store_pending_bytes", "Memory held by changes that are not in the mvcc file yet.", func(s *Status) float64 { return float64(s.Store.PendingBytes) }),
	gauge("kontiki_store_log_size_bytes", "Size of the raft log's files.", func(s *Status) float64 { return float64(s.LogBytes) }),
	gauge("kontiki_store_log_entries", "Entries in the raft log.", func(s *Status) float64 { return float64(s.LastIndex + 1 - s.FirstIndex) }),
	gauge("kontiki_store_snapshots_sending", "Snapshots on their way to other members.", func(s *Status) float64 { return float64(len(s.Sending)) }),
}

var (
	leaderChanges  = prometheus.NewDesc("etcd_server_leader_changes_seen_total", "Times that a member became leader, as seen here.", nil, nil)
	hashChecks     = prometheus.NewDesc("kontiki_store_hash_checks_total", "Comparisons of all members' content by this member.", nil, nil)
	hashMismatches = prometheus.NewDesc("kontiki_store_hash_mismatches_total", "Members that differed in a comparison.", nil, nil)
	alarmOn        = prometheus.NewDesc("kontiki_store_alarm", "1 for each alarm that is on.", []string{"kind", "member"}, nil)
)

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range statusMetrics {
		out <- m.desc
	}
	for _, d := range []*prometheus.Desc{leaderChanges, hashChecks, hashMismatches, alarmOn} {
		out <- d
	}
}

// Collect implements prometheus.Collector. A member that is closed has no metrics.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s, err := c.m.Status()
	if err != nil {
		return
	}
	for _, m := range statusMetrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s))
	}
	count := func(d *prometheus.Desc, n *atomic.Int64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n.Load()))
	}
	count(leaderChanges, &c.m.counters.leaderChanges)
	count(hashChecks, &c.m.counters.hashChecks)
	count(hashMismatches, &c.m.counters.hashMismatches)
	for _, a := range s.Alarms {
		out <- prometheus.MustNewConstMetric(alarmOn, prometheus.GaugeValue, 1, a.Kind, a.MemberID)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
