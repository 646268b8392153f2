package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

var (
	oneSeed   = flag.Uint64("sim.seed", 0, "run this seed alone, and say what happens")
	seeds     = flag.Int("sim.seeds", 1000, "how many seeds to run; with -short 10 at most")
	firstSeed = flag.Uint64("sim.first", 1, "the first of the seeds")
	verbose   = flag.Bool("sim.log", false, "show the members' log")
)

// TestSimulation runs seeds. A seed that fails is printed, with how to run it again.
func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		simulate(t, *oneSeed)
		return
	}
	n := *seeds
	if testing.Short() { // under the race detector, for one
		n = min(n, 10)
	}
	for i := range n {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, seed)
		})
	}
}

// simulation is one seed.
type simulation struct {
	seed     uint64
	during   time.Duration
	dice     *dice
	lessons  *report
	cluster  *cluster
	history  *history
	record   record
	leases   leases
	watches  []*watcher
	replayed *replayed              // by check
	final    int64                  // newest revision at the end
	turns    map[string]*sync.Mutex // by member: held by who ends and starts its processes
	changing sync.Mutex             // held while a change of membership is under way
	healing  sync.WaitGroup         // of faults that are not over

	mu      sync.Mutex // guards everything below
	counts  map[string]int
	elected time.Time // when a leader was elected last
}

func (s *simulation) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *simulation) noteLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elected = time.Now()
}

// wallClock bounds the real time of a seed. Virtual time goes on for ever if something waits for ever.
const wallClock = 2 * time.Minute

// simulate runs one seed, and reports what is wrong.
func simulate(t *testing.T, seed uint64) {
	s, plan := lived(t, seed, func(*simulation) {})
	s.check()
	if problems := s.lessons.all(); len(problems) > 0 {
		var lines []string
		for _, f := range plan {
			lines = append(lines, f.String())
		}
		t.Errorf("seed %d, %+v:\n%s\n\nfaults:\n%s\n\nrun it again: go test ./raftstore/simulation -run TestSimulation -sim.seed %d",
			seed, s.cluster.tuning, strings.Join(problems, "\n"), strings.Join(lines, "\n"), seed)
	}
	t.Logf("seed %d: %s, %d operations, %d revisions, %v", seed, s.cluster.tuning.RaftLog, len(s.record.all()), s.final, s.counts)
}

// lived is a seed with its life behind it, changed before that by the caller, and what went wrong in it.
func lived(t *testing.T, seed uint64, change func(*simulation)) (*simulation, []fault) {
	dir, err := os.MkdirTemp(shm(), "kontiki-simulation")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	s := &simulation{
		seed: seed, dice: newDice(seed, "faults"), lessons: &report{}, counts: map[string]int{}, turns: map[string]*sync.Mutex{},
	}
	s.history = newHistory(s.lessons)
	tuning := drawTuning(s.dice)
	tuning.Retention = drawRetention(seed)
	s.during = s.dice.between(20*time.Second, 40*time.Second)
	s.cluster = newCluster(seed, dir, tuning, &listener{simulation: s}, s.lessons)
	plan := drawFaults(s.dice, s.cluster.names, s.during)
	change(s)
	overdue := time.AfterFunc(wallClock, func() { panic(fmt.Sprintf("seed %d does not end; members hang", seed)) })
	defer overdue.Stop()
	synctest.Test(t, func(t *testing.T) { s.run(plan) })
	return s, plan
}

// shm is a file system in memory, where a sync costs nothing; "" if there is none.
func shm() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

const (
	clients = 8
	owners  = 3 // of leases
)

// run is the life of the cluster.
func (s *simulation) run(plan []fault) {
	for _, name := range s.cluster.names {
		s.turns[name] = &sync.Mutex{}
		s.cluster.start(name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	telling, stopTelling := context.WithCancel(context.Background())
	var working, tellers sync.WaitGroup
	for i := range clients {
		c := &client{s: s, name: fmt.Sprint("c", i), dice: newDice(s.seed, fmt.Sprint("client ", i))}
		working.Go(func() { c.run(ctx) })
	}
	for i := range owners {
		o := &owner{number: int64(i + 1), client: client{s: s, name: fmt.Sprint("o", i), dice: newDice(s.seed, fmt.Sprint("owner ", i))}}
		working.Go(func() { o.run(ctx) })
	}
	for i := range 3 {
		w := &watcher{s: s, dice: newDice(s.seed, fmt.Sprint("watcher ", i))}
		s.watches = append(s.watches, w)
		working.Go(func() { w.run(ctx) })
	}
	if s.cluster.tuning.Retention > 0 {
		working.Go(func() { s.watchCompaction(ctx) })
	} else {
		working.Go(func() { s.compact(ctx) })
	}
	for _, name := range s.cluster.names {
		tellers.Go(func() { s.tell(telling, name) })
	}
	s.wreak(plan)
	s.recover()
	cancel()
	working.Wait()
	s.expire()
	s.healing.Wait()
	s.settle()
	if s.cluster.tuning.Retention > 0 {
		s.waitCompaction()
	}
	stopTelling()
	tellers.Wait()
	s.cluster.close()
	time.Sleep(lastDial)
}

// lastDial is how long raft may still try to reach somebody after it was shut down: it does not wait for a transfer's goroutine.
const lastDial = 10 * time.Second

// compact compacts by hand now and then, up to what is known of history.
func (s *simulation) compact(ctx context.Context) {
	d := newDice(s.seed, "compaction")
	for ctx.Err() == nil {
		time.Sleep(d.upTo(8 * time.Second))
		p, known := s.cluster.any(d), s.history.known()
		if p == nil || known < 10 {
			continue
		}
		rev := known - int64(d.below(int(min(known, 100))))
		s.history.noteCompaction(rev)
		if err := p.member.Compact(ctx, rev); err == nil {
			s.count("compactions")
		}
	}
}

// patience is how long a cluster without faults may take until everything is as it should be.
const patience = 60 * time.Second

// recover waits until all members serve reads and writes again.
func (s *simulation) recover() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range s.cluster.processes() {
		if err := p.member.WaitReady(ctx); err != nil {
			s.lessons.add("%v is not ready %v after the last fault: %v", p, patience, err)
		}
	}
}

// settle waits until all members are at the same revision, and compares them.
func (s *simulation) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	up := s.cluster.processes()
	if len(up) != len(s.cluster.names) {
		s.lessons.add("only %v are up at the end", up)
	}
	for _, p := range up {
		rev, err := p.member.Revision(ctx)
		if err != nil {
			s.lessons.add("%v does not know its revision at the end: %v", p, err)
		}
		s.final = max(s.final, rev)
	}
	for _, p := range up {
		for s.history.seenBy(p.name) < s.final && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		if seen := s.history.seenBy(p.name); seen != s.final {
			s.lessons.add("the watch on %v is at %d at the end, not %d", p, seen, s.final)
		}
	}
	s.compareHashes(up)
}

// compareHashes compares the members at every revision that all have.
func (s *simulation) compareHashes(up []*process) {
	for rev := s.final; rev > 0; rev-- {
		hashes := map[mvcc.Hash][]string{}
		for _, p := range up {
			h, _, err := p.member.HashAt(rev)
			if errors.Is(err, mvcc.ErrCompacted) {
				return
			}
			if err != nil {
				s.lessons.add("hash of %v at %d: %v", p, rev, err)
				return
			}
			hashes[h] = append(hashes[h], p.name)
		}
		if len(hashes) > 1 {
			s.lessons.add("members differ at revision %d: %v", rev, slices.Collect(maps.Values(hashes)))
			return // and probably at all before
		}
	}
}

// check judges everything that was recorded.
func (s *simulation) check() {
	operations := s.record.all()
	x := replay(s.history, s.final, operations, s.lessons)
	s.replayed = x
	if int64(len(x.states)) <= s.final {
		return // nothing to compare with
	}
	x.checkOrder(operations, s.lessons)
	x.checkLinearizable(operations, s.lessons)
	x.checkLeases(s.history, &s.leases, operations, s.lessons)
	for _, w := range s.watches {
		for _, one := range w.done {
			one.check(s.history, x, s.lessons)
		}
	}
	for _, o := range operations {
		s.counts[o.outcome.String()]++
	}
	for _, o := range s.leases.all() {
		s.counts[o.kind+" "+o.outcome.String()]++
	}
	s.counts["leases that ended with keys"] = len(x.ended)
}
