package network_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/internal/netnstest"
	"kontiki/nodeagent/network"
)

// TestLocalAddresses: an address can be listened at as soon as the machine has it, of whichever family.
func TestLocalAddresses(t *testing.T) {
	space := netnstest.New(t, "lo")
	for i := range 200 {
		for _, address := range []string{fmt.Sprintf("10.96.0.%d", i+1), fmt.Sprintf("fd00:96::%x", i+1)} {
			var added, listened, again, removed error
			space.In(func() {
				at := netip.MustParseAddr(address)
				added = network.AddLocalAddress(at)
				var conn net.PacketConn
				if conn, listened = net.ListenPacket("udp", net.JoinHostPort(address, "53")); listened == nil {
					_ = conn.Close()
				}
				again = network.AddLocalAddress(at)
				removed = network.RemoveLocalAddress(at)
			})
			require.NoError(t, errors.Join(added, listened, again, removed))
		}
	}
}
