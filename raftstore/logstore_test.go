package raftstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRaftLogKinds: a member lives on either store, and stays with the one it began with.
func TestRaftLogKinds(t *testing.T) {
	for kind, other := range map[string]string{LogWAL: LogBoltDB, LogBoltDB: LogWAL} {
		t.Run(kind, func(t *testing.T) {
			cfg := Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true, RaftLog: kind}
			m := openMember(t, cfg)
			_, err := m.Txn(t.Context(), putTxn("k", "v"))
			require.NoError(t, err)
			require.NoError(t, m.Close())

			cfg.RaftLog = other
			_, err = Open(cfg)
			require.ErrorIs(t, err, ErrOtherLog)

			cfg.RaftLog = ""
			m = openMember(t, cfg)
			defer func() { require.NoError(t, m.Close()) }()
			require.Equal(t, kind == LogWAL, exists(t, filepath.Join(cfg.Dir, walDirectory)))
			_, err = m.Txn(t.Context(), putTxn("k", "w"))
			require.NoError(t, err)
		})
	}
	_, err := Open(Config{Dir: t.TempDir(), NodeID: "a", RaftLog: "paper"})
	require.ErrorContains(t, err, `"paper"`)
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	found, err := filepath.Glob(path)
	require.NoError(t, err)
	return len(found) > 0
}

// TestLostLog: a store without its log is refused, rather than served as if new writes reached it.
func TestLostLog(t *testing.T) {
	for kind, file := range map[string]string{LogWAL: walDirectory, LogBoltDB: stableFile} {
		cfg := Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true, RaftLog: kind}
		m := openMember(t, cfg)
		_, err := m.Txn(t.Context(), putTxn("k", "v"))
		require.NoError(t, err)
		require.NoError(t, m.Close())
		require.NoError(t, os.RemoveAll(filepath.Join(cfg.Dir, file)))
		_, err = Open(cfg)
		require.ErrorIs(t, err, ErrLogLost)
	}
}
