package faults

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// host is a network namespace, with a thread that lives in it: what runs on the thread, and the processes that it
// starts, are in the namespace. Those processes die with the thread (Pdeathsig goes by the thread).
type host struct {
	name  string
	ip    net.IP
	work  chan func()
	netns *os.File
}

func newHost(t *testing.T, name string, ip net.IP) *host {
	h := &host{name: name, ip: ip, work: make(chan func())}
	began := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			began <- err
			return
		}
		var err error
		h.netns, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		began <- err
		for f := range h.work {
			f()
		}
	}()
	if err := <-began; err != nil {
		t.Skip("cannot make a network namespace here: ", err)
	}
	t.Cleanup(func() {
		close(h.work)
		_ = h.netns.Close()
	})
	return h
}

// do runs f on the host's thread.
func (h *host) do(f func() error) error {
	done := make(chan error)
	h.work <- func() { done <- f() }
	return <-done
}

// link is one direction of a cable between two hosts: what from sends to to.
type link struct {
	from, to *host
	device   string
	address  net.HardwareAddr // of the other end
}

// nobody is an address that no device has.
var nobody = net.HardwareAddr{2, 0, 0, 0, 0, 0}

// cut loses what is sent from now on, without a word to the sender: it goes to an address that nobody has.
func (l *link) cut() error { return l.sendTo(nobody) }

// heal ends cut.
func (l *link) heal() error { return l.sendTo(l.address) }

func (l *link) sendTo(a net.HardwareAddr) error {
	return l.from.do(func() error {
		device, err := netlink.LinkByName(l.device)
		if err != nil {
			return err
		}
		return netlink.NeighSet(&netlink.Neigh{LinkIndex: device.Attrs().Index, IP: l.to.ip, HardwareAddr: a, State: netlink.NUD_PERMANENT})
	})
}

// join lays a cable between two hosts, and returns its two directions.
func join(t *testing.T, a, b *host) (ab, ba *link) {
	ab, ba = &link{from: a, to: b, device: b.name}, &link{from: b, to: a, device: a.name}
	require.NoError(t, a.do(func() error {
		veth := netlink.NewLinkAttrs()
		veth.Name = ab.device
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: veth, PeerName: ba.device, PeerNamespace: netlink.NsFd(b.netns.Fd())})
	}))
	var err error
	ba.address, err = ab.up()
	require.NoError(t, err)
	ab.address, err = ba.up()
	require.NoError(t, err)
	require.NoError(t, ab.heal())
	require.NoError(t, ba.heal())
	return ab, ba
}

// up has the sending end of the link carry what goes to the other host; it returns that end's own address.
func (l *link) up() (own net.HardwareAddr, err error) {
	err = l.from.do(func() error {
		device, err := netlink.LinkByName(l.device)
		if err != nil {
			return err
		}
		own = device.Attrs().HardwareAddr
		if err := netlink.AddrAdd(device, &netlink.Addr{IPNet: alone(l.from.ip)}); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(device); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: device.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: alone(l.to.ip), Src: l.from.ip})
	})
	return own, err
}

func alone(ip net.IP) *net.IPNet { return &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)} }
