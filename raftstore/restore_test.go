package raftstore

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

func TestSealedSnapshot(t *testing.T) {
	for _, size := range []int{0, 1, 31, 32, 33, 100_000} {
		content := bytes.Repeat([]byte("x"), size)
		var b bytes.Buffer
		require.NoError(t, writeSealed(&b, func(w io.Writer) error { _, err := w.Write(content); return err }))
		require.Len(t, b.Bytes(), size+32)
		for _, in := range []io.Reader{bytes.NewReader(b.Bytes()), iotest.OneByteReader(bytes.NewReader(b.Bytes()))} {
			got, err := io.ReadAll(newUnsealed(in))
			require.NoError(t, err)
			require.Equal(t, string(content), string(got))
		}
		for _, broken := range [][]byte{b.Bytes()[:b.Len()-1], append(bytes.Clone(b.Bytes()), 0), flip(b.Bytes(), 0), flip(b.Bytes(), b.Len()-1)} {
			_, err := io.ReadAll(newUnsealed(bytes.NewReader(broken)))
			require.ErrorIs(t, err, ErrSnapshotDamaged)
		}
	}
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// TestRestore_RF07: keys come back with their values and revisions, into a cluster of three of which one was
// restored; and whoever watches from where the old cluster was is told that this is gone.
func TestRestore_RF07(t *testing.T) {
	dir := t.TempDir()
	var snapshot bytes.Buffer
	var before mvcc.RangeResult
	all := mvcc.RangeRequest{Key: []byte{0}, End: []byte{0}}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, filepath.Join(dir, "old"), func(cfg *Config) { cfg.Name = "old-" + cfg.NodeID })
		defer c.close()
		for i := range 30 {
			c.put(c.members["a"], fmt.Sprint("k", i%10))
		}
		l, err := c.members["a"].GrantLease(t.Context(), 7, 1000)
		require.NoError(t, err)
		_, err = c.members["a"].Txn(t.Context(), mvcc.TxnRequest{Then: []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte("leased"), Value: []byte("v"), Lease: l.ID}}}})
		require.NoError(t, err)
		before, err = c.members["a"].Range(t.Context(), all)
		require.NoError(t, err)
		require.NoError(t, c.members["a"].SaveSnapshot(&snapshot))
		for i := range 5 {
			c.put(c.members["a"], fmt.Sprint("later", i)) // is lost, but somebody may have seen it
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, dir: filepath.Join(dir, "new"), network: NewMemoryNetwork(), members: map[string]*Member{}}
		defer c.close()
		require.NoError(t, os.MkdirAll(c.dir, 0o700))
		cfg := RestoreConfig{Dir: filepath.Join(c.dir, "x"), NodeID: "x", Peers: []Peer{{ID: "x", Address: "x"}}, Log: quiet()}
		damaged := flip(snapshot.Bytes(), snapshot.Len()/2)
		require.ErrorIs(t, RestoreSnapshot(cfg, bytes.NewReader(damaged)), ErrSnapshotDamaged)
		require.NoDirExists(t, cfg.Dir)
		require.NoError(t, RestoreSnapshot(cfg, bytes.NewReader(snapshot.Bytes())))
		require.ErrorContains(t, RestoreSnapshot(cfg, bytes.NewReader(snapshot.Bytes())), "must be empty")

		x := c.join("x", "")
		require.NoError(t, x.WaitReady(t.Context()))
		for _, name := range []string{"y", "z"} {
			c.join(name, "", "x")
			c.listed(x, name, isVoter)
		}
		c.same()
		for _, m := range c.members {
			after, err := m.Range(t.Context(), all)
			require.NoError(t, err)
			require.Equal(t, before.KVs, after.KVs)
			require.Equal(t, before.Revision+defaultBump, after.Revision)
			for start := before.Revision; start < before.Revision+8; start++ {
				batch := <-m.Watch(t.Context(), mvcc.WatchRequest{Key: []byte{0}, End: []byte{0}, StartRevision: start})
				require.ErrorIs(t, batch.Err, mvcc.ErrCompacted)
			}
			require.Len(t, m.store.Leases(), 1)
			for _, n := range m.store.Notes("") {
				require.False(t, strings.HasSuffix(n.Name, "/a"), "the old members are gone")
			}
		}
		c.put(c.members["z"], "new")
		c.kill("y")
		c.join("y", "", "nobody")
		c.same()
	})
}

// TestRecoverQuorum_RF11: two of three disks are lost. The survivor is made the only member, refuses while that
// is not needed, has all it had, and two new members make three again.
func TestRecoverQuorum_RF11(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.SnapshotEntries = 20 })
		defer c.close()
		for i := range 50 {
			c.put(c.members["b"], fmt.Sprint("k", i))
		}
		require.NoError(t, c.members["a"].raft.Snapshot().Error())
		c.put(c.members["b"], "last")
		c.same()
		recover := func() error {
			return RecoverQuorum(t.Context(), Config{Dir: filepath.Join(dir, "a"), NodeID: "a", Network: c.network.Join("a"), Log: quiet()})
		}
		c.stop("a")
		require.ErrorIs(t, recover(), ErrQuorumReachable)
		c.stop("b")
		require.ErrorIs(t, recover(), ErrQuorumReachable, "one of the two others is enough, with this one")
		c.stop("c")
		for _, lost := range []string{"b", "c"} {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, lost)))
		}
		c.start("a")
		time.Sleep(5 * time.Second)
		require.False(t, c.members["a"].HasLeader())
		c.stop("a")
		require.NoError(t, recover())

		c.start("a")
		a := c.members["a"]
		require.NoError(t, a.WaitReady(t.Context()))
		res, err := a.Range(t.Context(), mvcc.RangeRequest{Key: []byte{0}, End: []byte{0}})
		require.NoError(t, err)
		require.Len(t, res.KVs, 51)
		for _, name := range []string{"d", "e"} {
			c.join(name, "", "a")
			c.listed(a, name, isVoter)
		}
		require.Len(t, a.LocalMembers(), 3)
		c.put(c.members["e"], "after")
		c.same()
	})
}
