package rejoin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/stretchr/testify/require"

	"kontiki/raftstore/wal"
)

// logStores open the log of a member, and the function that closes it.
var logStores = map[string]func(t *testing.T, dir string) (raft.LogStore, func() error){
	"wal": func(t *testing.T, dir string) (raft.LogStore, func() error) {
		l, err := wal.Open(dir, wal.Options{SegmentBytes: 64 << 10})
		require.NoError(t, err)
		return l, l.Close
	},
	"boltdb": func(t *testing.T, dir string) (raft.LogStore, func() error) {
		s, err := raftboltdb.NewBoltStore(filepath.Join(dir, "log.db"))
		require.NoError(t, err)
		return s, s.Close
	},
}

// fullDisk is a log on a disk that may be full: what is deleted needs no room, entries do.
type fullDisk struct {
	raft.LogStore
	full *atomic.Bool
}

func (d fullDisk) StoreLogs(entries []*raft.Log) error {
	if d.full.Load() {
		return syscall.ENOSPC
	}
	return d.LogStore.StoreLogs(entries)
}

func (d fullDisk) IsMonotonic() bool {
	m, ok := d.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func keepNothing() uint64 { return 0 }

// words is a state machine: all commands in order.
type words struct {
	mu    sync.Mutex // guards words
	words []string
}

func (w *words) Apply(l *raft.Log) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.words = append(w.words, string(l.Data))
	return nil
}

func (w *words) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.words)
}

func (w *words) Snapshot() (raft.FSMSnapshot, error) { return wordsSnapshot(w.all()), nil }

func (w *words) Restore(r io.ReadCloser) error {
	defer r.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.words = nil
	return json.NewDecoder(r).Decode(&w.words)
}

type wordsSnapshot []string

func (s wordsSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := json.NewEncoder(sink).Encode(s); err != nil {
		return err
	}
	return sink.Close()
}

func (wordsSnapshot) Release() {}

// transport is raft's transport in memory, with other incoming messages: those that the guard corrected, if
// there is one, and that were counted.
type transport struct {
	*raft.InmemTransport
	messages <-chan raft.RPC
}

func (t transport) Consumer() <-chan raft.RPC { return t.messages }

// member is a member of a cluster whose disk survives restarts.
type member struct {
	t         *testing.T
	id        raft.ServerID
	store     string // of logStores
	guarded   bool
	full      atomic.Bool // the disk takes no entries
	dir       string
	stable    *raft.InmemStore
	snapshots raft.SnapshotStore
	trans     *raft.InmemTransport

	words     *words
	log       raft.LogStore
	raft      *raft.Raft
	installs  int // InstallSnapshot messages that reached raft; guarded by mu
	mu        sync.Mutex
	closeFunc []func()
}

var servers = raft.Configuration{Servers: []raft.Server{
	{ID: "a", Address: "a"}, {ID: "b", Address: "b"}, {ID: "c", Address: "c"},
}}

func newMember(t *testing.T, id raft.ServerID, store string, guarded bool) *member {
	_, trans := raft.NewInmemTransport(raft.ServerAddress(id))
	return &member{
		t: t, id: id, store: store, guarded: guarded, dir: t.TempDir(),
		stable: raft.NewInmemStore(), snapshots: raft.NewInmemSnapshotStore(), trans: trans,
	}
}

func (m *member) config() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = m.id
	c.Logger = hclog.NewNullLogger()
	c.TrailingLogs = 10
	c.SnapshotInterval, c.SnapshotThreshold = 1000*time.Hour, 1<<40 // when the test says
	return c
}

// start runs the member, until stop.
func (m *member) start(c *raft.Config) {
	log, closeLog := logStores[m.store](m.t, m.dir)
	log = fullDisk{log, &m.full}
	m.log, m.words = log, &words{}
	has, err := raft.HasExistingState(log, m.stable, m.snapshots)
	require.NoError(m.t, err)
	if !has {
		require.NoError(m.t, raft.BootstrapCluster(c, log, m.stable, m.snapshots, m.trans, servers))
	}
	ctx, cancel := context.WithCancel(context.Background())
	messages := make(chan raft.RPC)
	var passing sync.WaitGroup
	in, closeGuard := m.trans.Consumer(), func() {}
	if m.guarded {
		g, err := New(log, m.snapshots, keepNothing, slog.Default())
		require.NoError(m.t, err)
		corrected := make(chan raft.RPC)
		passing.Go(func() { g.Run(ctx, m.trans.Consumer(), corrected) })
		m.log, in = g, corrected
		closeGuard = g.Close
	}
	passing.Go(func() { m.count(ctx, in, messages) })
	m.raft, err = raft.NewRaft(c, m.words, m.log, m.stable, m.snapshots, transport{m.trans, messages})
	require.NoError(m.t, err)
	m.closeFunc = []func(){
		closeGuard,
		func() { require.NoError(m.t, m.raft.Shutdown().Error()) },
		cancel, passing.Wait,
		func() { require.NoError(m.t, closeLog()) },
	}
}

func (m *member) stop() {
	for _, f := range m.closeFunc {
		f()
	}
	m.closeFunc = nil
}

// count passes messages on and counts the snapshots among them.
func (m *member) count(ctx context.Context, in <-chan raft.RPC, out chan<- raft.RPC) {
	for {
		select {
		case rpc := <-in:
			if _, ok := rpc.Command.(*raft.InstallSnapshotRequest); ok {
				m.mu.Lock()
				m.installs++
				m.mu.Unlock()
			}
			send(ctx, rpc, out)
		case <-ctx.Done():
			return
		}
	}
}

func (m *member) installed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.installs
}

func word(index, term uint64) string { return fmt.Sprintf("%d@%d", index, term) }

func entries(first, last, term uint64) []*raft.Log {
	var all []*raft.Log
	for i := first; i <= last; i++ {
		all = append(all, &raft.Log{Index: i, Term: term, Data: []byte(word(i, term))})
	}
	return all
}

func wordsOf(first, last, term uint64) []string {
	var all []string
	for i := first; i <= last; i++ {
		all = append(all, word(i, term))
	}
	return all
}

func encoded(w []string) *bytes.Reader {
	b, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return bytes.NewReader(b)
}
