package raftstore

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestMetrics(t *testing.T) {
	m := openMember(t, Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true})
	defer func() { require.NoError(t, m.Close()) }()
	_, err := m.Txn(t.Context(), putTxn("k", "v"))
	require.NoError(t, err)
	require.NoError(t, m.raise(t.Context(), Alarm{Kind: AlarmCorrupt, MemberID: "b"}))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m.Collector()))
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		x := f.Metric[0]
		values[f.GetName()] = x.GetGauge().GetValue() + x.GetCounter().GetValue()
	}
	for name, want := range map[string]float64{
		"etcd_server_has_leader": 1, "etcd_server_is_leader": 1, "etcd_server_leader_changes_seen_total": 1,
		"etcd_debugging_mvcc_current_revision": 2, "etcd_debugging_mvcc_keys_total": 1, "kontiki_store_hash_mismatches_total": 0,
	} {
		require.Contains(t, values, name)
		require.Equal(t, want, values[name], name)
	}
	require.Positive(t, values["kontiki_store_log_size_bytes"])
}
