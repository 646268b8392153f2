package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing/synctest"
	"time"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// cluster is the members, dead or alive.
type cluster struct {
	names   []string
	dir     string
	network *network
	tuning  tuning
	log     *listener
	lessons *report // where what is wrong goes
	clocks  map[string]*clock
	lying   bool // a defect: at a crash, logs are empty since their disks never kept anything
	group   sync.WaitGroup

	mu    sync.Mutex // guards everything below
	lives map[string]int
	ids   map[string]string // of members that were replaced; the others' are their names
	up    map[string]*process
	disks map[string]*disk
	logs  map[string]*logDisk // what the last process of a member left; nil is an empty disk
}

// tuning is what is the same for all members, drawn once for each seed.
type tuning struct {
	Members          int
	SnapshotEntries  uint64
	SnapshotInterval time.Duration
	CommitInterval   time.Duration
	TailBytes        int
	RaftLog          string
	SegmentBytes     int64
	Retention        time.Duration // of history; 0 is for ever
}

func drawTuning(d *dice) tuning {
	return tuning{
		Members:          pick(d, 3, 3, 3, 5),
		SnapshotEntries:  pick[uint64](d, 8, 20, 60, 10_000),
		SnapshotInterval: pick(d, 300*time.Millisecond, time.Second, 4*time.Second),
		CommitInterval:   pick(d, time.Millisecond, 100*time.Millisecond, time.Second),
		TailBytes:        pick(d, 1, 2000, 4<<20),
		RaftLog:          pick(d, raftstore.LogWAL, raftstore.LogWAL, raftstore.LogWAL, raftstore.LogWAL, raftstore.LogBoltDB),
		SegmentBytes:     pick[int64](d, 16<<10, 64<<10),
	}
}

func newCluster(seed uint64, dir string, t tuning, log *listener, r *report) *cluster {
	c := &cluster{
		names: []string{"a", "b", "c", "d", "e"}[:t.Members], dir: dir, tuning: t, log: log, lessons: r,
		network: newNetwork(newDice(seed, "network")),
		lives:   map[string]int{}, ids: map[string]string{}, up: map[string]*process{}, disks: map[string]*disk{},
		logs: map[string]*logDisk{}, clocks: map[string]*clock{},
	}
	for _, name := range c.names {
		c.disks[name] = &disk{dice: newDice(seed, "disk "+name)}
		c.clocks[name] = newClock(newDice(seed, "clock "+name))
	}
	return c
}

func (c *cluster) dirOf(name string, life int) string {
	return filepath.Join(c.dir, fmt.Sprintf("%s.%d", name, life))
}

// start gives a member that is down its next life.
func (c *cluster) start(name string) {
	c.mu.Lock()
	life, log := c.lives[name], c.logs[name]
	c.mu.Unlock()
	p := &process{name: name, life: life, dir: c.dirOf(name, life), port: c.network.join(name), disk: c.disks[name], gate: &gate{}}
	if c.tuning.RaftLog == raftstore.LogWAL {
		p.log = log
		if log == nil {
			p.log = newLogDisk()
		}
	}
	p.alive, p.die = context.WithCancel(context.Background())
	var err error
	if p.member, err = raftstore.Open(c.config(p)); err != nil {
		c.lessons.add("%v does not start: %v", p, err)
		return
	}
	if p.log != nil {
		p.log.settle(p.log.mark())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[name] = p
}

func (c *cluster) config(p *process) raftstore.Config {
	var peers []raftstore.Peer
	for _, name := range c.names {
		peers = append(peers, raftstore.Peer{ID: name, Address: name})
	}
	cfg := raftstore.Config{
		Dir: p.dir, NodeID: p.name, Network: p.port, Bootstrap: true, Peers: peers,
		SnapshotEntries: c.tuning.SnapshotEntries, SnapshotInterval: c.tuning.SnapshotInterval,
		Store:            mvcc.Options{CommitInterval: c.tuning.CommitInterval, TailBytes: c.tuning.TailBytes},
		HistoryRetention: c.tuning.Retention,
		OnDisk:           p.onDisk, RaftLog: c.tuning.RaftLog, LogSegmentBytes: c.tuning.SegmentBytes,
		Clock: func() time.Time { p.gate.pass(); return c.clocks[p.name].now() },
		Log:   slog.New(c.log.of(p)),
	}
	if p.log != nil {
		cfg.LogDirectory = p.log
	}
	if id := c.id(p.name); id != p.name {
		cfg.NodeID, cfg.Bootstrap, cfg.Peers, cfg.Join = id, false, nil, c.names
	}
	return cfg
}

// id returns the id that a member has in the cluster.
func (c *cluster) id(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := c.ids[name]; id != "" {
		return id
	}
	return name
}

// replace gives a member that is down an empty disk and a new id.
func (c *cluster) replace(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[name], c.logs[name] = fmt.Sprintf("%s%d", name, c.lives[name]), nil
	if err := os.RemoveAll(c.dirOf(name, c.lives[name])); err != nil {
		c.lessons.add("lose the disk of %s: %v", name, err)
	}
}

// kill takes members down as kill -9 does: what is in their files at this moment is all that is left.
// synctest.Wait makes it a moment in which nobody computes or writes; but a member whose disk is slow may be
// anywhere around a write. With powerCut the machine goes with it. Only one goroutine may call it at a time.
func (c *cluster) kill(powerCut bool, names ...string) {
	synctest.Wait()
	for _, name := range names {
		p := c.remove(name)
		if p == nil {
			continue
		}
		if err := copyDir(p.dir, c.dirOf(name, p.life+1)); err != nil {
			c.lessons.add("copy what %v left: %v", p, err)
		}
		c.leave(p, func(d *logDisk) *logDisk {
			if c.lying {
				return newLogDisk()
			}
			return d.crash(c.disks[p.name].dice, powerCut)
		})
		p.port.kill()
		p.die()
		p.gate.shut(0)
		c.group.Go(func() { c.bury(p) })
	}
}

// leave keeps for the next process of a member what this one left on the disk of its log.
func (c *cluster) leave(p *process, left func(*logDisk) *logDisk) {
	if p.log == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs[p.name] = left(p.log)
}

// remove takes a process off the list.
func (c *cluster) remove(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.up[name]
	if p != nil {
		delete(c.up, name)
		c.lives[name]++
	}
	return p
}

// bury ends a dead process's goroutines. Whether it can close cleanly, cut off, does not matter.
func (c *cluster) bury(p *process) {
	_ = p.member.Close()
	if err := os.RemoveAll(p.dir); err != nil {
		c.lessons.add("remove %s: %v", p.dir, err)
	}
}

// stop takes a member down cleanly.
func (c *cluster) stop(name string) {
	p := c.remove(name)
	if p == nil {
		return
	}
	if err := p.member.Close(); err != nil {
		c.lessons.add("%v does not stop cleanly: %v", p, err)
	}
	c.leave(p, func(d *logDisk) *logDisk { return d })
	p.die()
	p.port.kill()
	if err := os.Rename(p.dir, c.dirOf(name, p.life+1)); err != nil {
		c.lessons.add("rename %s: %v", p.dir, err)
	}
}

// close stops all members and waits for the dead ones.
func (c *cluster) close() {
	for _, name := range c.names {
		c.stop(name)
	}
	c.group.Wait()
}

// process returns the living process of a member, nil if it is down.
func (c *cluster) process(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up[name]
}

// processes returns the living processes, in the order of names.
func (c *cluster) processes() (up []*process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names {
		if p := c.up[name]; p != nil {
			up = append(up, p)
		}
	}
	return up
}

// any returns a member that is up, nil if none is.
func (c *cluster) any(d *dice) *process {
	up := c.processes()
	if len(up) == 0 {
		return nil
	}
	return up[d.below(len(up))]
}

// leader returns the name of the member that leads in the newest term; the first name if none does.
func (c *cluster) leader() string {
	name, term := c.names[0], uint64(0)
	for _, p := range c.processes() {
		if st, err := p.member.Status(); err == nil && st.Role == "Leader" && st.Term > term {
			name, term = p.name, st.Term
		}
	}
	return name
}
