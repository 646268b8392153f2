package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// nemesis does one fault after the other to a cluster.
type nemesis struct {
	*cluster
	t       *testing.T
	history *history
	dice    *rand.Rand

	count    map[string]int
	recovery map[string][]time.Duration // from the end of a fault until every member acknowledges writes
}

func newNemesis(t *testing.T, c *cluster, h *history) *nemesis {
	return &nemesis{cluster: c, t: t, history: h, dice: rand.New(rand.NewPCG(*seed, 0)), count: map[string]int{}, recovery: map[string][]time.Duration{}}
}

// recoveryLimit is how long members may take to serve again when a fault is over. It only tells a hang from slowness.
const recoveryLimit = 30 * time.Second

// fault is done to a member for a while; its name is for the report.
type fault struct {
	name string
	do   func(n *nemesis, member int, d time.Duration) error
}

var faults = []fault{
	{"kill -9", (*nemesis).killOne},
	{"kill -9 of all", (*nemesis).killAll},
	{"SIGSTOP", (*nemesis).stop},
	{"partition", partition(true, true)},
	{"partition, outgoing only", partition(true, false)},
	{"partition, incoming only", partition(false, true)},
	{"partition, kill -9 within", (*nemesis).killApart},
}

// run does faults until the context ends; the last is over when it returns.
func (n *nemesis) run(ctx context.Context) error {
	for n.pause(ctx, time.Second) {
		f := faults[n.dice.IntN(len(faults))]
		member, d := n.victim(ctx), time.Duration(n.dice.Int64N(int64(4*time.Second)))
		kind := f.name
		if member == n.leader(ctx) {
			kind += ", leader"
		}
		n.count[kind]++
		n.history.begins(kind)
		err := f.do(n, member, d)
		if err == nil {
			err = n.awaitRecovery(kind)
		}
		if err != nil {
			return fmt.Errorf("%s, %s for %v: %w", kind, n.members[member].spec.ID, d, err)
		}
	}
	return nil
}

// victim is the leader more often than not.
func (n *nemesis) victim(ctx context.Context) int {
	member, preferLeader := n.dice.IntN(len(n.members)), n.dice.IntN(2) == 0
	if leader := n.leader(ctx); preferLeader && leader >= 0 {
		return leader
	}
	return member
}

// pause waits at random, up to a limit; false if the context has ended.
func (n *nemesis) pause(ctx context.Context, limit time.Duration) bool {
	select {
	case <-time.After(time.Duration(n.dice.Int64N(int64(limit)))):
		return true
	case <-ctx.Done():
		return false
	}
}

func (n *nemesis) awaitRecovery(fault string) error {
	over := time.Now()
	for !n.history.servesSince(over) {
		if time.Since(over) > recoveryLimit {
			return fmt.Errorf("a member does not serve again within %v", recoveryLimit)
		}
		<-time.After(10 * time.Millisecond)
	}
	n.recovery[fault] = append(n.recovery[fault], time.Since(over))
	return nil
}

func (n *nemesis) killOne(member int, d time.Duration) error {
	n.members[member].kill()
	<-time.After(d)
	return n.members[member].start(n.t)
}

func (n *nemesis) killAll(_ int, d time.Duration) error {
	for _, m := range n.members {
		m.kill()
	}
	<-time.After(d / 4)
	for _, m := range n.members {
		if err := m.start(n.t); err != nil {
			return err
		}
	}
	return nil
}

func (n *nemesis) stop(member int, d time.Duration) error {
	if err := n.members[member].signal(syscall.SIGSTOP); err != nil {
		return err
	}
	<-time.After(d)
	return n.members[member].signal(syscall.SIGCONT)
}

func partition(out, in bool) func(*nemesis, int, time.Duration) error {
	return func(n *nemesis, member int, d time.Duration) error {
		if err := n.partition(member, out, in); err != nil {
			return err
		}
		<-time.After(d)
		return n.heal(member)
	}
}

// killApart kills a member that is cut off: what it wrote while it was alone must not outlive that, and the others'
// connections to it are never ended by anybody.
func (n *nemesis) killApart(member int, d time.Duration) error {
	if err := n.partition(member, true, true); err != nil {
		return err
	}
	<-time.After(d)
	n.members[member].kill()
	return errors.Join(n.heal(member), n.members[member].start(n.t))
}
