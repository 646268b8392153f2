package raftstore

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestReadWithMinorityOfFive: a leader of five whom one member answers and three do not refuses to read,
// and does not wait for a fifth answer. The cluster simulation found that it did (seed 33).
func TestReadWithMinorityOfFive(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, network: NewMemoryNetwork(), members: map[string]*Member{}}
		five := []string{"a", "b", "c", "d", "e"}
		var peers []Peer
		for _, name := range five {
			peers = append(peers, Peer{ID: name, Address: name})
		}
		for _, name := range five {
			c.members[name] = openMember(t, Config{
				Dir: filepath.Join(dir, name), NodeID: name, Network: c.network.Join(name), Bootstrap: true, Peers: peers, Log: quiet(),
			})
			defer func() { require.NoError(t, c.members[name].Close()) }()
		}
		c.ready()
		old := c.leader(five...)
		others := c.others(old)
		c.network.Partition([]string{old.cfg.NodeID, others[0]}) // breaks the connections that there are
		c.network.Heal()
		for _, silent := range others[1:] {
			c.network.Join(silent) // nobody accepts connections there: they fail late, after the one answer
		}
		_, err := old.readIndex.get(t.Context())
		require.ErrorIs(t, err, ErrNotLeader)
	})
}
