package wal

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// closingStore is a log store that is a file.
type closingStore interface {
	raft.LogStore
	Close() error
}

// stores are the implementations that raftstore can choose from. Opening a directory again goes on.
var stores = map[string]func(t testing.TB, dir string) closingStore{
	"wal": func(t testing.TB, dir string) closingStore {
		l, err := Open(dir, Options{})
		require.NoError(t, err)
		return l
	},
	"boltdb": func(t testing.TB, dir string) closingStore {
		s, err := raftboltdb.New(raftboltdb.Options{
			Path:                    filepath.Join(dir, "raft.db"),
			BoltOptions:             &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 30},
			MsgpackUseNewTimeFormat: true,
		})
		require.NoError(t, err)
		return s
	},
}

func command(index, term uint64, data string) *raft.Log {
	return &raft.Log{Index: index, Term: term, Data: []byte(data)}
}

func commands(first, last, term uint64) []*raft.Log {
	var logs []*raft.Log
	for i := first; i <= last; i++ {
		logs = append(logs, command(i, term, fmt.Sprintf("entry %d of term %d", i, term)))
	}
	return logs
}

func requireBounds(t testing.TB, s raft.LogStore, first, last uint64) {
	t.Helper()
	f, err := s.FirstIndex()
	require.NoError(t, err)
	l, err := s.LastIndex()
	require.NoError(t, err)
	require.Equal(t, []uint64{first, last}, []uint64{f, l}, "first and last index")
}

func requireEntries(t testing.TB, s raft.LogStore, want []*raft.Log) {
	t.Helper()
	for _, w := range want {
		var got raft.Log
		require.NoError(t, s.GetLog(w.Index, &got), "entry %d", w.Index)
		require.True(t, w.AppendedAt.Equal(got.AppendedAt), "AppendedAt of entry %d", w.Index)
		got.AppendedAt = w.AppendedAt
		require.Equal(t, *w, got)
	}
}

// TestContract is what raft expects of a LogStore, the same for every one. Each step is checked before
// and after the store was closed and opened.
func TestContract(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			for _, c := range contract {
				t.Run(c.name, func(t *testing.T) {
					dir := t.TempDir()
					s := open(t, dir)
					c.do(t, s)
					c.check(t, s)
					require.NoError(t, s.Close())
					s = open(t, dir)
					c.check(t, s)
					require.NoError(t, s.Close())
				})
			}
		})
	}
}

var allFields = &raft.Log{
	Index: 1, Term: 1<<63 + 7, Type: raft.LogConfiguration, Data: []byte{0, 1, 255}, Extensions: []byte("more"),
	AppendedAt: time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC),
}

var contract = []struct {
	name      string
	do, check func(t *testing.T, s raft.LogStore)
}{
	{"empty",
		func(*testing.T, raft.LogStore) {},
		func(t *testing.T, s raft.LogStore) {
			requireBounds(t, s, 0, 0)
			require.ErrorIs(t, s.GetLog(1, &raft.Log{}), raft.ErrLogNotFound)
			require.NoError(t, s.DeleteRange(1, 10))
		}},
	{"append",
		func(t *testing.T, s raft.LogStore) {
			require.NoError(t, s.StoreLog(command(1, 1, "one")))
			require.NoError(t, s.StoreLogs(commands(2, 40, 2)))
		},
		func(t *testing.T, s raft.LogStore) {
			requireBounds(t, s, 1, 40)
			requireEntries(t, s, append(commands(2, 40, 2), command(1, 1, "one")))
			require.ErrorIs(t, s.GetLog(0, &raft.Log{}), raft.ErrLogNotFound)
			require.ErrorIs(t, s.GetLog(41, &raft.Log{}), raft.ErrLogNotFound)
		}},
	{"all fields",
		func(t *testing.T, s raft.LogStore) { require.NoError(t, s.StoreLog(allFields)) },
		func(t *testing.T, s raft.LogStore) { requireEntries(t, s, []*raft.Log{allFields}) }},
	{"large entries",
		func(t *testing.T, s raft.LogStore) { require.NoError(t, s.StoreLogs(large)) },
		func(t *testing.T, s raft.LogStore) { requireEntries(t, s, large) }},
	{"begin anywhere",
		func(t *testing.T, s raft.LogStore) { require.NoError(t, s.StoreLogs(commands(1000, 1003, 5))) },
		func(t *testing.T, s raft.LogStore) { requireBounds(t, s, 1000, 1003) }},
	{"compact",
		func(t *testing.T, s raft.LogStore) {
			require.NoError(t, s.StoreLogs(commands(1, 100, 1)))
			require.NoError(t, s.DeleteRange(1, 60))
		},
		func(t *testing.T, s raft.LogStore) {
			requireBounds(t, s, 61, 100)
			require.ErrorIs(t, s.GetLog(60, &raft.Log{}), raft.ErrLogNotFound)
			requireEntries(t, s, commands(61, 100, 1))
		}},
	{"conflict",
		func(t *testing.T, s raft.LogStore) {
			require.NoError(t, s.StoreLogs(commands(1, 100, 1)))
			require.NoError(t, s.DeleteRange(51, 100))
			requireBounds(t, s, 1, 50)
			require.NoError(t, s.StoreLogs(commands(51, 52, 2)))
		},
		func(t *testing.T, s raft.LogStore) {
			requireBounds(t, s, 1, 52)
			requireEntries(t, s, append(commands(1, 50, 1), commands(51, 52, 2)...))
			require.ErrorIs(t, s.GetLog(53, &raft.Log{}), raft.ErrLogNotFound)
		}},
	{"delete all, go on after a gap",
		func(t *testing.T, s raft.LogStore) {
			require.NoError(t, s.StoreLogs(commands(1, 100, 1)))
			require.NoError(t, s.DeleteRange(1, 100))
			requireBounds(t, s, 0, 0)
			require.NoError(t, s.StoreLogs(commands(201, 210, 3)))
		},
		func(t *testing.T, s raft.LogStore) {
			requireBounds(t, s, 201, 210)
			requireEntries(t, s, commands(201, 210, 3))
			require.ErrorIs(t, s.GetLog(100, &raft.Log{}), raft.ErrLogNotFound)
		}},
	{"delete all, go on before the end",
		func(t *testing.T, s raft.LogStore) {
			require.NoError(t, s.StoreLogs(commands(1, 100, 1)))
			require.NoError(t, s.DeleteRange(1, 100))
			require.NoError(t, s.StoreLogs(commands(50, 51, 3)))
		},
		func(t *testing.T, s raft.LogStore) {
			requireBounds(t, s, 50, 51)
			requireEntries(t, s, commands(50, 51, 3))
		}},
	{"stay empty",
		func(t *testing.T, s raft.LogStore) {
			require.NoError(t, s.StoreLogs(commands(7, 9, 1)))
			require.NoError(t, s.DeleteRange(1, 9))
		},
		func(t *testing.T, s raft.LogStore) { requireBounds(t, s, 0, 0) }},
}

// large is a batch that no segment of the usual size has room for.
var large = []*raft.Log{
	{Index: 1, Term: 1, Data: make([]byte, 9<<20)}, {Index: 2, Term: 1, Data: make([]byte, 9<<20)}, command(3, 1, "small"),
}
