package faults

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kontiki/raftstore"
)

// cluster is three members and the links between them.
type cluster struct {
	members []*member
	links   map[[2]int]*link // from the first to the second
}

func newCluster(t *testing.T) *cluster { return newClusterOn(t, nil) }

// newClusterOn makes a cluster whose members have a disk each; newDisk nil is the disk of all.
func newClusterOn(t *testing.T, newDisk func(t *testing.T, h *host) *disk) *cluster {
	c := &cluster{links: map[[2]int]*link{}}
	dir := t.TempDir()
	var hosts []*host
	spec := memberSpec{}
	for i, name := range []string{"a", "b", "c"} {
		h := newHost(t, name, net.IPv4(10, 77, 0, byte(i+1)).To4())
		hosts = append(hosts, h)
		spec.Peers = append(spec.Peers, peer(h))
	}
	for i := range hosts {
		for j := range i {
			c.links[[2]int{i, j}], c.links[[2]int{j, i}] = join(t, hosts[i], hosts[j])
		}
	}
	for _, h := range hosts {
		spec.ID, spec.Dir, spec.Socket = h.name, filepath.Join(dir, h.name), filepath.Join(dir, h.name+".sock")
		var d *disk
		if newDisk != nil {
			d = newDisk(t, h)
			spec.Dir, spec.Cgroup = filepath.Join(d.dir, "member"), d.cgroup
		}
		c.members = append(c.members, newMember(t, h, spec, d))
	}
	return c
}

// leader is the number of the member that says that it leads in the highest term; -1 if none does.
func (c *cluster) leader(ctx context.Context) int {
	leader, highest := -1, uint64(0)
	for i, m := range c.members {
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		s, err := m.client.Status(ctx, m.client.Endpoints()[0])
		cancel()
		if err == nil && s.Leader == s.Header.MemberId && s.RaftTerm > highest {
			leader, highest = i, s.RaftTerm
		}
	}
	return leader
}

// terms are those of the members, 0 for one that does not answer.
func (c *cluster) terms(t *testing.T) (all []uint64) {
	for _, m := range c.members {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		s, err := m.client.Status(ctx, m.client.Endpoints()[0])
		cancel()
		if err != nil {
			s = &clientv3.StatusResponse{}
		}
		all = append(all, s.RaftTerm)
	}
	return all
}

// partition cuts a member off: what it sends, what is sent to it, or both.
func (c *cluster) partition(member int, out, in bool) error {
	return c.each(member, func(l *link, outgoing bool) error {
		if outgoing && out || !outgoing && in {
			return l.cut()
		}
		return nil
	})
}

func (c *cluster) heal(member int) error {
	return c.each(member, func(l *link, _ bool) error { return l.heal() })
}

func (c *cluster) each(member int, f func(l *link, outgoing bool) error) error {
	for ends, l := range c.links {
		if ends[0] != member && ends[1] != member {
			continue
		}
		if err := f(l, ends[0] == member); err != nil {
			return fmt.Errorf("link %s to %s: %w", l.from.name, l.to.name, err)
		}
	}
	return nil
}

// waitReady waits until every member answers a linearizable read.
func (c *cluster) waitReady(t *testing.T) {
	for _, m := range c.members {
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := m.client.Get(ctx, "ready")
			return err == nil
		}, time.Minute, 50*time.Millisecond, "member %s does not become ready", m.spec.ID)
	}
}

func peer(h *host) raftstore.Peer {
	return raftstore.Peer{ID: h.name, Address: net.JoinHostPort(h.ip.String(), "2380")}
}
