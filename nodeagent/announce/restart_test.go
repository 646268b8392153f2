package announce

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// byWeight are nodes in the order in which they are to have the address.
func byWeight(address netip.Addr, names ...string) []string {
	slices.SortFunc(names, func(a, b string) int {
		if owner(address, []string{a, b}) == a {
			return -1
		}
		return 1
	})
	return names
}

// TestRestartWithoutGap: an agent that is away for less than four seconds, whenever it stops, goes on where it was; also with an
// address that it has in place of a node that is dead.
func TestRestartWithoutGap(t *testing.T) {
	address := netip.MustParseAddr("192.0.2.100")
	order := byWeight(address, "a", "b", "c")
	for _, c := range []struct {
		away, stop time.Duration // the agent stops so long after a look at it
		dead       int           // nodes that come before it
	}{
		{time.Second, 1900 * time.Millisecond, 0}, {3900 * time.Millisecond, 0, 0}, {3900 * time.Millisecond, 1900 * time.Millisecond, 0},
		{3 * time.Second, 700 * time.Millisecond, 1}, {3900 * time.Millisecond, 1900 * time.Millisecond, 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crowd := newCrowd(t, order...)
				defer crowd.stopAll()
				crowd.service("s", address.String())
				time.Sleep(10 * time.Second)
				if c.dead > 0 {
					crowd.stops[order[0]]()
					time.Sleep(20 * time.Second)
				}
				holder := order[c.dead]
				require.Equal(t, holder, crowd.watch(address, 4*time.Second))
				time.Sleep(c.stop)
				crowd.stops[holder]()
				require.Equal(t, holder, crowd.watch(address, c.away))
				crowd.start(holder)
				require.Equal(t, holder, crowd.watch(address, 20*time.Second))
			})
		})
	}
}

// TestInheritedGoesToItsOwner: what an agent finds on its machine after a restart it leaves to the node whose it is meanwhile.
func TestInheritedGoesToItsOwner(t *testing.T) {
	address := netip.MustParseAddr("192.0.2.100")
	order := byWeight(address, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		crowd := newCrowd(t, order[1])
		defer crowd.stopAll()
		crowd.service("s", address.String())
		time.Sleep(10 * time.Second)
		require.Equal(t, order[1], crowd.watch(address, time.Second))
		crowd.stops[order[1]]()
		crowd.join(order[0])
		crowd.start(order[1])
		time.Sleep(10 * time.Second)
		require.Equal(t, order[0], crowd.watch(address, 20*time.Second))
	})
}

// TestHoldEndsWithTheWord: an agent that is cut off and then killed, before the others take it for dead, leaves its address for
// no more than a period to two nodes. (Later it has asked the network, and holds it for lifetime.)
func TestHoldEndsWithTheWord(t *testing.T) {
	address := netip.MustParseAddr("192.0.2.100")
	order := byWeight(address, "a", "b")
	for _, hangs := range []bool{false, true} {
		for killed := 2500 * time.Millisecond; killed < 7*time.Second; killed += time.Second {
			t.Run(fmt.Sprint(hangs, killed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					crowd := newCrowd(t, order...)
					defer crowd.stopAll()
					crowd.service("s", address.String())
					time.Sleep(10 * time.Second)
					require.Equal(t, order[0], crowd.watch(address, time.Second))
					r := crowd.reaches[order[0]]
					r.hangs = hangs
					r.set(true)
					time.Sleep(killed)
					crowd.stops[order[0]]()
					two := time.Duration(0)
					const step = 125 * time.Millisecond
					for range 20 * time.Second / step {
						time.Sleep(step)
						synctest.Wait()
						if len(crowd.lan.holders(address)) == 2 {
							two += step
						}
					}
					require.LessOrEqual(t, two, period)
					require.Equal(t, order[1], crowd.watch(address, time.Second))
				})
			})
		}
	}
}
