package apiserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Lease is stale when it was seen unchanged for twelve seconds, by somebody who looked all the time.
func TestStaleServerLeases(t *testing.T) {
	lease := func(name, version string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	names := func(leases []*coordinationv1.Lease) (names []string) {
		for _, l := range leases {
			names = append(names, l.Name)
		}
		return names
	}
	for _, c := range []struct {
		what  string
		looks map[int][]*coordinationv1.Lease // by second
		want  map[int][]string
	}{
		{"one is dead, one renews", map[int][]*coordinationv1.Lease{
			0: {lease("dead", "1"), lease("b", "2")}, 4: {lease("dead", "1"), lease("b", "3")},
			8: {lease("dead", "1"), lease("b", "4")}, 12: {lease("dead", "1"), lease("b", "5")},
		}, map[int][]string{12: {"dead"}}},
		{"renewed late", map[int][]*coordinationv1.Lease{
			0: {lease("a", "1")}, 4: {lease("a", "1")}, 8: {lease("a", "2")}, 12: {lease("a", "2")}, 16: {lease("a", "2")}, 20: {lease("a", "2")},
		}, map[int][]string{20: {"a"}}},
		{"the observer slept", map[int][]*coordinationv1.Lease{
			0: {lease("a", "1")}, 4: {lease("a", "1")}, 30: {lease("a", "1")}, 34: {lease("a", "1")}, 38: {lease("a", "1")}, 42: {lease("a", "1")},
		}, map[int][]string{42: {"a"}}},
	} {
		var seen sightings
		start := time.Now()
		for second := range 60 {
			if leases, looked := c.looks[second]; looked {
				require.Equal(t, c.want[second], names(seen.stale(leases, start.Add(time.Duration(second)*time.Second))), "%s, after %d s", c.what, second)
			}
		}
	}
}
