package compare

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kontiki/internal/bench/load"
	"kontiki/internal/bench/member"
	"kontiki/internal/freeport"
)

const (
	members = 3
	// readyLimit is how long a cluster may take to have a leader that answers.
	readyLimit = 30 * time.Second
	askEvery   = 20 * time.Millisecond
)

// cluster is a running cluster.
type cluster struct {
	dir       string
	processes []*process
	clients   []grpcFront // one for each member
	leader    int         // which member led when it was last looked for
}

// startCluster starts members in new directories below dir and waits until they have a leader.
func startCluster(ctx context.Context, c Column, dir string) (_ *cluster, err error) {
	cl := &cluster{}
	if cl.dir, err = os.MkdirTemp(dir, "cluster-"); err != nil {
		return nil, err
	}
	if err := cl.start(ctx, c); err != nil {
		return nil, errors.Join(err, cl.stop())
	}
	return cl, nil
}

func (cl *cluster) start(ctx context.Context, c Column) error {
	client, err := addresses()
	if err != nil {
		return err
	}
	peer, err := addresses()
	if err != nil {
		return err
	}
	for i := range members {
		own := filepath.Join(cl.dir, member.Name(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		p, err := startProcess(c.binary, member.Spec{System: c.system, Dir: own, Index: i, Client: client, Peer: peer})
		if err != nil {
			return err
		}
		cl.processes = append(cl.processes, p)
		front, err := dial(client[i])
		if err != nil {
			return err
		}
		cl.clients = append(cl.clients, front)
	}
	return cl.waitReady(ctx)
}

func addresses() (list []string, err error) {
	for range members {
		port, err := freeport.Take()
		if err != nil {
			return nil, err
		}
		list = append(list, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return list, nil
}

// waitReady waits until all members agree on a leader, and it takes a write.
func (cl *cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		if cl.agree(ctx) && cl.clients[cl.leader].Put(ctx, "/ready", nil) == nil {
			return nil
		}
		if err := load.Pause(ctx, askEvery); err != nil {
			return fmt.Errorf("the cluster does not become ready: %w", err)
		}
	}
}

// agree asks all members who leads.
func (cl *cluster) agree(ctx context.Context) bool {
	var leader uint64
	for i, c := range cl.clients {
		s, err := cl.status(ctx, c)
		if err != nil || s.Leader == 0 || leader != 0 && s.Leader != leader {
			return false
		}
		leader = s.Leader
		if s.Header.MemberId == leader {
			cl.leader = i
		}
	}
	return true
}

func (cl *cluster) status(ctx context.Context, f grpcFront) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return f.client.Status(ctx, f.client.Endpoints()[0])
}

// term is raft's term: the number of elections so far, as it were.
func (cl *cluster) term(ctx context.Context) (uint64, error) {
	s, err := cl.status(ctx, cl.clients[cl.leader])
	if err != nil {
		return 0, err
	}
	return s.RaftTerm, nil
}

// stop kills the members and removes their directories.
func (cl *cluster) stop() error {
	for _, c := range cl.clients {
		_ = c.client.Close()
	}
	for _, p := range cl.processes {
		p.kill()
	}
	return os.RemoveAll(cl.dir)
}

// usage is what the members use together: CPU in all, memory of one on average.
func (cl *cluster) usage() (sum usage, err error) {
	for _, p := range cl.processes {
		u, err := p.usage()
		if err != nil {
			return sum, err
		}
		sum.cpuSeconds += u.cpuSeconds
		sum.resident += u.resident / members
		sum.anon += u.anon / members
	}
	return sum, nil
}
