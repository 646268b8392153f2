package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// fault is one thing that goes wrong, for some time.
type fault struct {
	at    time.Duration // since the start
	kind  string
	who   []string // members; "leader" is who leads when it begins
	lasts time.Duration
}

func (f fault) String() string {
	return fmt.Sprintf("%8v %s %s for %v", f.at.Round(time.Millisecond), f.kind, strings.Join(f.who, ","), f.lasts.Round(time.Millisecond))
}

// kinds of fault and how often each is drawn.
var kinds = []struct {
	name   string
	weight int
	who    int // how many members it takes; 0 is a number up to all
	most   time.Duration
}{
	{"cut off", 4, 1, 3 * time.Second},        // all that is sent from or to a member waits
	{"deafen", 3, 1, 3 * time.Second},         // only what is sent to it
	{"mute", 3, 1, 3 * time.Second},           // only what it sends
	{"cut between", 3, 2, 3 * time.Second},    // two members, both ways; others reach both
	{"refuse", 4, 1, 3 * time.Second},         // a member's connections break and no new ones can be made
	{"break connections", 4, 2, 0},            // once
	{"worsen", 5, 0, 6 * time.Second},         // slow and lossy ways from and to some members
	{"kill", 8, 1, 3 * time.Second},           // and start again from what is in the files
	{"kill some", 3, 0, 3 * time.Second},      // at the same moment
	{"stop", 4, 1, 3 * time.Second},           // cleanly
	{"slow disk", 5, 0, 6 * time.Second},      // each write takes up to slowWrite
	{"stick disk", 4, 1, 3 * time.Second},     // nothing is written for so long
	{"pause", 6, 1, 4 * time.Second},          // all of a member stands still, as with SIGSTOP (standstill_test.go)
	{"pause and kill", 2, 1, 3 * time.Second}, // and it never wakes up
	{"jump clock", 3, 1, 0},                   // forward or back
	{"lose disk", 2, 1, 2 * time.Second},      // and begin anew with a new id
	{"remove", 2, 1, 2 * time.Second},         // and join again with a new id
	{"demote", 2, 1, 2 * time.Second},         // and promote again
	{"move leader", 3, 1, 0},
	{"defragment", 2, 1, 0},
	{"slow disk and kill", 4, 1, 3 * time.Second}, // the kill falls between a log write and its acknowledgement
	{"power cut", 4, 0, 3 * time.Second},          // the same, and what was not synced may be lost
}

const slowWrite = 150 * time.Millisecond

// drawFaults draws all that goes wrong within a duration, in order.
func drawFaults(d *dice, names []string, during time.Duration) (plan []fault) {
	var weights []int
	for _, k := range kinds {
		weights = append(weights, k.weight)
	}
	calm := pick(d, time.Second, 2*time.Second, 4*time.Second) // some seeds are wilder than others
	for at := d.upTo(2 * calm); at < during; at += d.upTo(2 * calm) {
		k := kinds[d.weighted(weights...)]
		f := fault{at: at, kind: k.name, who: drawMembers(d, names, k.who)}
		if k.most > 0 {
			f.lasts = min(d.between(k.most/50, k.most), during-at)
		}
		plan = append(plan, f)
	}
	slices.SortStableFunc(plan, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return plan
}

func drawMembers(d *dice, names []string, n int) []string {
	if n == 0 {
		n = 1 + d.below(len(names))
	}
	names = slices.Clone(names)
	for i := range n {
		j := i + d.below(len(names)-i)
		names[i], names[j] = names[j], names[i]
	}
	if n == 1 && d.happens(0.4) {
		return []string{"leader"}
	}
	return names[:n]
}

// wreak does what the plan says, and at the end undoes it.
func (s *simulation) wreak(plan []fault) {
	begin := time.Now()
	for _, f := range plan {
		time.Sleep(time.Until(begin.Add(f.at)))
		if f.who[0] == "leader" {
			f.who = []string{s.cluster.leader()}
		}
		s.strike(f)
	}
	time.Sleep(time.Until(begin.Add(s.during)))
	s.healing.Wait()
}

// later undoes something when a fault is over.
func (s *simulation) later(f fault, undo func()) {
	s.healing.Go(func() {
		time.Sleep(f.lasts)
		undo()
	})
}

func (s *simulation) strike(f fault) {
	s.count(f.kind)
	switch f.kind {
	case "cut off":
		s.cut(f, s.ways(f.who[0], true, true))
	case "deafen":
		s.cut(f, s.ways(f.who[0], true, false))
	case "mute":
		s.cut(f, s.ways(f.who[0], false, true))
	case "cut between":
		s.cut(f, [][2]string{{f.who[0], f.who[1]}, {f.who[1], f.who[0]}})
	case "refuse":
		s.refuse(f, s.ways(f.who[0], true, true))
	case "break connections":
		s.cluster.network.resetAll(f.who[0], f.who[1])
	case "worsen":
		s.worsen(f)
	case "slow disk":
		s.slowDisk(f)
	case "stick disk":
		s.cluster.disks[f.who[0]].stick(f.lasts)
	case "pause":
		s.pause(f)
	case "lose disk", "remove", "demote":
		s.changeMembers(f)
	case "jump clock":
		s.jumpClock(f)
	case "move leader":
		s.moveLeader(f)
	case "defragment":
		s.defragment(f)
	default:
		s.endProcesses(f)
	}
}

// ways are the links to and from a member.
func (s *simulation) ways(name string, to, from bool) (ways [][2]string) {
	for _, other := range s.cluster.names {
		if other == name {
			continue
		}
		if to {
			ways = append(ways, [2]string{other, name})
		}
		if from {
			ways = append(ways, [2]string{name, other})
		}
	}
	return ways
}

func (s *simulation) cut(f fault, ways [][2]string) {
	for _, w := range ways {
		s.cluster.network.cut(w[0], w[1], +1)
	}
	s.later(f, func() {
		for _, w := range ways {
			s.cluster.network.cut(w[0], w[1], -1)
		}
	})
}

func (s *simulation) refuse(f fault, ways [][2]string) {
	for _, w := range ways {
		s.cluster.network.refuse(w[0], w[1], +1)
	}
	s.later(f, func() {
		for _, w := range ways {
			s.cluster.network.refuse(w[0], w[1], -1)
		}
	})
}

func (s *simulation) worsen(f fault) {
	slow, loss := pick(s.dice, 5*time.Millisecond, 50*time.Millisecond, 400*time.Millisecond), pick(s.dice, 0, 0.05, 0.3)
	set := func(slow time.Duration, loss float64) {
		for _, name := range f.who {
			for _, w := range s.ways(name, true, true) {
				s.cluster.network.worsen(w[0], w[1], slow, loss)
			}
		}
	}
	set(slow, loss)
	s.later(f, func() { set(0, 0) })
}

func (s *simulation) slowDisk(f fault) {
	for _, name := range f.who {
		s.cluster.disks[name].set(slowWrite)
	}
	s.later(f, func() {
		for _, name := range f.who {
			s.cluster.disks[name].set(0)
		}
	})
}

// endProcesses takes members down and up again. A member that is down, or going down, is left alone.
func (s *simulation) endProcesses(f fault) {
	var mine []string
	for _, name := range f.who {
		if s.turns[name].TryLock() {
			mine = append(mine, name)
		}
	}
	if len(mine) == 0 {
		return
	}
	f.who = mine
	switch f.kind {
	case "kill", "kill some":
		s.cluster.kill(false, mine...)
	case "pause and kill":
		s.pause(f)
		time.Sleep(f.lasts / 2)
		s.cluster.kill(false, mine...)
	case "slow disk and kill", "power cut":
		s.slowDisk(f)
		time.Sleep(s.dice.upTo(2 * slowWrite))
		s.cluster.kill(f.kind == "power cut", mine...)
	}
	s.healing.Go(func() {
		for _, name := range mine {
			if f.kind == "stop" {
				s.cluster.stop(name)
			}
		}
		time.Sleep(f.lasts)
		for _, name := range mine {
			s.cluster.start(name)
			s.turns[name].Unlock()
		}
	})
}
