package raftstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// cluster is three members in a testing/synctest bubble: real raft, real files, and a network in
// memory. Time is the bubble's, so seconds of elections pass in an instant.
type cluster struct {
	t       *testing.T
	dir     string
	network *MemoryNetwork
	members map[string]*Member
	tune    func(*Config)
}

var names = []string{"a", "b", "c"}

// newCluster starts the members. The directory must come from outside the bubble.
func newCluster(t *testing.T, dir string, tune func(*Config)) *cluster {
	c := &cluster{t: t, dir: dir, network: NewMemoryNetwork(), members: map[string]*Member{}, tune: tune}
	for _, name := range names {
		c.start(name)
	}
	c.ready()
	return c
}

func (c *cluster) start(name string) {
	var peers []Peer
	for _, p := range names {
		peers = append(peers, Peer{ID: p, Address: p})
	}
	cfg := Config{Dir: filepath.Join(c.dir, name), NodeID: name, Network: c.network.Join(name), Bootstrap: true, Peers: peers, Log: quiet()}
	if c.tune != nil {
		c.tune(&cfg)
	}
	c.members[name] = openMember(c.t, cfg)
}

func (c *cluster) stop(name string) {
	require.NoError(c.t, c.members[name].Close())
	delete(c.members, name)
}

func (c *cluster) close() {
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		c.stop(name)
	}
}

// kill takes a member down as kill -9 would: what is in its files at this moment is all that is left.
func (c *cluster) kill(name string) {
	left := filepath.Join(c.dir, "left")
	copyMember(c.t, c.members[name], left)
	c.network.Partition([]string{name}) // the rest of its life changes nothing for the others
	c.stop(name)
	require.NoError(c.t, os.RemoveAll(filepath.Join(c.dir, name)))
	require.NoError(c.t, os.Rename(left, filepath.Join(c.dir, name)))
	c.network.Heal()
}

// copyMember copies a running member's directory, the store before the log: the log may be ahead of
// the store, as it is in life, but not behind.
func copyMember(t testing.TB, m *Member, to string) {
	require.NoError(t, os.CopyFS(filepath.Join(to, "snapshots"), os.DirFS(filepath.Join(m.cfg.Dir, "snapshots"))))
	for _, pattern := range []string{storeFile, walDirectory + "/*", stableFile} {
		for name, b := range readStill(t, m.cfg.Dir, pattern) {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(to, name), b, 0o600))
		}
	}
}

// readStill reads files that others write to, as they were at one moment: when they read the same twice.
func readStill(t testing.TB, dir, pattern string) map[string][]byte {
	var last map[string][]byte
	for {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		files := map[string][]byte{}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) {
				continue // a segment that was recycled meanwhile: it is not the same twice
			}
			require.NoError(t, err)
			files[strings.TrimPrefix(path, dir)] = b
		}
		if last != nil && maps.EqualFunc(files, last, bytes.Equal) {
			return files
		}
		last = files
	}
}

func (c *cluster) ready() {
	for _, m := range c.members {
		require.NoError(c.t, m.WaitReady(c.t.Context()))
	}
}

// leader waits for a leader among the members that can see a majority.
func (c *cluster) leader(among ...string) *Member {
	c.t.Helper()
	for range 1000 {
		for _, name := range among {
			if m := c.members[name]; m != nil && m.raft.State().String() == "Leader" {
				return m
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatal("no leader")
	return nil
}

func (c *cluster) others(m *Member) (names []string) {
	for name := range c.members {
		if name != m.cfg.NodeID {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// same waits until all members have applied the same, and checks that it is the same content, now
// and at every revision that was not compacted.
func (c *cluster) same() {
	c.t.Helper()
	c.ready()
	var want mvcc.Stats
	for _, m := range c.members {
		st, err := m.store.Stats()
		require.NoError(c.t, err)
		want.Revision, want.Applied = max(want.Revision, st.Revision), max(want.Applied, st.Applied)
		want.Compacted = max(want.Compacted, st.Compacted)
	}
	for rev := max(want.Compacted, 1); rev <= want.Revision; rev += 1 + want.Revision/50 {
		hashes := map[mvcc.Hash][]string{}
		for name, m := range c.members {
			require.NoError(c.t, m.store.WaitApplied(c.t.Context(), want.Applied))
			h, _, err := m.HashAt(rev)
			require.NoError(c.t, err)
			hashes[h] = append(hashes[h], name)
		}
		require.Len(c.t, hashes, 1, "members differ at revision %d", rev)
	}
}

// writer writes keys of its own, one after the other, and remembers what it was told.
type writer struct {
	name string
	acks map[string]int64 // key → revision
	none []string         // keys of writes that certainly did not happen
	open int              // writes with an unknown outcome
}

// run writes through the given members in turn until ctx ends.
func (w *writer) run(ctx context.Context, through []*Member) {
	w.acks = map[string]int64{}
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("%s/%05d", w.name, i)
		attempt, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		res, err := through[i%len(through)].Txn(attempt, putTxn(key, key))
		cancel()
		switch {
		case err == nil:
			w.acks[key] = res.Revision
		case isUnknown(err):
			w.open++
		default:
			w.none = append(w.none, key)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// check compares what the writer was told with what is there.
func (w *writer) check(t *testing.T, m *Member) {
	t.Helper()
	res, err := m.Range(t.Context(), mvcc.RangeRequest{Key: []byte(w.name + "/"), End: []byte(w.name + "0")})
	require.NoError(t, err)
	there := map[string]mvcc.KeyValue{}
	for _, kv := range res.KVs {
		there[string(kv.Key)] = kv
		require.EqualValues(t, 1, kv.Version, "%s was applied twice", kv.Key)
	}
	for key, rev := range w.acks {
		require.Equal(t, rev, there[key].ModRevision, "acknowledged write of %s", key)
	}
	for _, key := range w.none {
		require.NotContains(t, there, key, "this write was said not to have happened")
	}
	require.LessOrEqual(t, len(there), len(w.acks)+w.open)
}

func removeStore(dir string) error { return os.Remove(filepath.Join(dir, storeFile)) }
