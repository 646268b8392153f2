package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

// TestSlowLink_RF09: a member whose link takes longer to carry a snapshot than the log reaches back catches up all the
// same, under load and without an election.
func TestSlowLink_RF09(t *testing.T) {
	requireNamespaces(t)
	c := newCluster(t)
	c.waitReady(t)
	leader := c.leader(t.Context())
	away := (leader + 1) % len(c.members)
	c.members[away].kill()
	for i := range 100 { // 10 MB, so a snapshot takes four seconds and more; every 500 entries there is another
		_, err := c.members[leader].client.Put(t.Context(), fmt.Sprintf("ballast/%03d", i), strings.Repeat("v", 100_000))
		require.NoError(t, err)
	}
	if err := c.slowLinks(away, 20_000_000); err != nil {
		t.Skip("cannot make a link slow here (sch_tbf): ", err)
	}
	term := c.terms(t)[leader]
	h := newHistory()
	n := newNemesis(t, c, h)
	stopWriters := startWriters(t, c, h)
	began := time.Now()
	require.NoError(t, c.members[away].start(t))
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.members[away].client.Get(ctx, "ready")
		return err == nil
	}, time.Minute, 50*time.Millisecond, "it does not catch up")
	t.Logf("caught up after %v", time.Since(began))
	stopWriters()
	t.Log(report(n, time.Since(began)))
	require.Greater(t, time.Since(began), 4*time.Second, "the link was slow")
	require.Equal(t, term, c.terms(t)[leader], "nobody is elected")
	lastRevision(t, c)
}

// slowLinks makes what is sent to and by a member go at so many bits per second.
func (c *cluster) slowLinks(member int, bits uint64) error {
	return c.each(member, func(l *link, _ bool) error {
		return l.from.do(func() error {
			device, err := netlink.LinkByName(l.device)
			if err != nil {
				return err
			}
			return netlink.QdiscAdd(&netlink.Tbf{
				QdiscAttrs: netlink.QdiscAttrs{LinkIndex: device.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
				Rate:       bits / 8, Buffer: 1 << 17, Limit: 1 << 20,
			})
		})
	})
}
