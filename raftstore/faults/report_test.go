package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// report says what happened in a run.
func report(n *nemesis, duration time.Duration) string {
	h, b := n.history, &strings.Builder{}
	outcomes := map[outcome]int{}
	for _, w := range h.writes {
		outcomes[w.outcome]++
	}
	fmt.Fprintf(b, "in %v: %d writes acknowledged, %d refused by their compare, %d of unknown outcome; %d reads, %d more failed\n",
		duration.Round(time.Second), outcomes[acknowledged], outcomes[refused], outcomes[unknown], len(h.reads), h.failed)
	fmt.Fprintf(b, "windows of at least %v without an acknowledged write: %s\n", gap, spread(slices.Concat(slices.Collect(maps.Values(h.gaps))...)))
	for _, kind := range slices.Sorted(maps.Keys(n.count)) {
		fmt.Fprintf(b, "%-34s %4d times; windows: %s; all members serve again after %s\n", kind, n.count[kind], spread(h.gaps[kind]), spread(n.recovery[kind]))
	}
	return b.String()
}

func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	d = slices.Sorted(slices.Values(d))
	return fmt.Sprintf("%d, median %v, longest %v", len(d), d[len(d)/2].Round(time.Millisecond), d[len(d)-1].Round(time.Millisecond))
}
