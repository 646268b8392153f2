package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	labDuration = flag.Duration("lab.duration", 30*time.Second, "how long TestLabSoak breaks the lab")
	labSeed     = flag.Uint64("lab.seed", 0, "seed of its faults; 0 takes one from the clock")
)

// labFault is done to a machine of the lab for a while; heal ends it.
type labFault struct {
	name string
	do   func(l *labCLI, machine string, dice *rand.Rand)
}

var labFaults = []labFault{
	{"kill -9", func(l *labCLI, machine string, _ *rand.Rand) { l.ok("kill", machine) }},
	{"stop", func(l *labCLI, machine string, _ *rand.Rand) { l.ok("stop", machine) }},
	{"pause", func(l *labCLI, machine string, _ *rand.Rand) { l.ok("pause", machine) }},
	{"reboot", func(l *labCLI, machine string, _ *rand.Rand) { l.ok("reboot", machine) }},
	{"partition", func(l *labCLI, machine string, _ *rand.Rand) {
		l.ok("partition", machine, "|", strings.Join(without(soakMachines, machine), ","))
	}},
	{"loss", func(l *labCLI, machine string, dice *rand.Rand) { l.ok("loss", machine, fmt.Sprint(5+dice.IntN(25))) }},
	{"delay", func(l *labCLI, machine string, dice *rand.Rand) {
		l.ok("delay", machine, fmt.Sprint(20+dice.IntN(180), "ms"))
	}},
	{"slow disk", func(l *labCLI, machine string, dice *rand.Rand) {
		l.ok("slow-disk", machine, fmt.Sprint(10+dice.IntN(90)))
	}},
}

var soakMachines = []string{"s1", "s2", "s3", "a1"}

// TestLabSoak breaks a lab at random while it is used: writers through each server and through the front, a watch, pods and
// Services that come and go. No acknowledged write may be lost and no event; no address may be given twice; Services must forget a
// pod that is dead within five seconds (labconverge_test.go); and in the end nothing may be left over, of memory, descriptors, mounts, namespaces, processes or rules.
func TestLabSoak(t *testing.T) {
	l := newLab(t, "--agents", "1")
	if *labSeed == 0 {
		*labSeed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat the faults with -lab.seed %d", *labSeed)
	s := &soak{labCLI: l, group: l.cgroup(), dice: rand.New(rand.NewPCG(*labSeed, 0)), count: map[string]int{}, churn: newChurn(t, l)}
	s.churn.warm(t.Context())
	before := s.usage()
	t.Logf("before: %s", before)

	ctx, cancel := context.WithTimeout(t.Context(), *labDuration)
	defer cancel()
	var users sync.WaitGroup
	s.deaths = watchDeaths(ctx, s, &users)
	defer s.explain()
	for _, through := range []string{"lab", "s1", "s2", "s3"} {
		users.Go(func() { s.writeEpochs(ctx, through) })
	}
	s.churn.start(ctx, &users)
	s.breakThings(ctx)
	users.Wait()

	l.whole()
	s.churn.clear(t.Context())
	t.Log(s.report())
	require.False(t, t.Failed())
	s.noLeak(before)
}

// soak is a lab that is broken while it is used.
type soak struct {
	*labCLI
	group string // its cgroup
	churn *churn
	dice  *rand.Rand

	count     map[string]int
	recovered []time.Duration // from the end of a fault until the lab was whole
	deaths    *deaths

	mu     sync.Mutex // guards what follows
	writes int
	slow   time.Duration // the longest that a write took
	breaks int           // of watches
}

// breakThings does one fault after the other until ctx ends.
func (s *soak) breakThings(ctx context.Context) {
	for ctx.Err() == nil && !s.t.Failed() {
		fault := labFaults[s.dice.IntN(len(labFaults))]
		machine := soakMachines[s.dice.IntN(len(soakMachines))]
		if out, err := s.run("leader"); err == nil && s.dice.IntN(2) == 0 {
			machine = strings.TrimSpace(out)
		}
		s.count[fault.name]++
		s.t.Logf("%s: %s of %s", time.Now().Format("15:04:05.000"), fault.name, machine)
		fault.do(s.labCLI, machine, s.dice)
		pauseFor(ctx, time.Duration(s.dice.Int64N(int64(4*time.Second))))
		began := time.Now()
		s.whole()
		s.recovered = append(s.recovered, time.Since(began))
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// explain says what was seen until it failed, and what the machines have logged last.
func (s *soak) explain() {
	if !s.t.Failed() {
		return
	}
	s.t.Log(s.report())
	for _, machine := range soakMachines {
		s.t.Logf("%s: %s", machine, s.logTail(machine))
	}
}

// holders says what the API has of an address.
func (s *soak) holders(address string) string {
	pods, _ := s.kubectl("lab", "get", "pods", "-o", "wide")
	slices, _ := s.kubectl("lab", "get", "endpointslices")
	var found []string
	for line := range strings.Lines(pods + slices) {
		if strings.Contains(line, address) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n")
}

// logTail is the end of what a machine's kontiki has logged.
func (l *labCLI) logTail(machine string) string {
	log, err := os.ReadFile(filepath.Join(l.dir, machine, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-3000):])
}

func (s *soak) report() string {
	var kinds []string
	for kind, n := range s.count {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(kinds)
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("faults: %s\nwhole again: %s\nrules without a dead pod: %s\nwrites: %d, the longest took %s; watches went on elsewhere %d times\n%s",
		strings.Join(kinds, ", "), spread(s.recovered), s.deaths.report(), s.writes, s.slow.Round(time.Millisecond), s.breaks, s.churn.report())
}

// spread is where some durations lie.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "never"
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)-1)*percent/100].Round(time.Millisecond) }
	return fmt.Sprintf("%d times, p50 %s, p95 %s, p99 %s, longest %s", len(all), at(50), at(95), at(99), at(100))
}
