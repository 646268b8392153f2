package announce

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long an answer is waited for.
const patience = 300 * time.Millisecond

const (
	arpRequest, arpReply = 1, 2
	arpBytes             = 28
)

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// tell sends an ARP announcement (RFC 5227 section 2.3), or an unsolicited neighbour advertisement.
func (kernel) tell(address netip.Addr) error {
	device, err := deviceFor(address)
	if err != nil {
		return err
	}
	if address.Is6() {
		return advertise(device, address)
	}
	socket, err := openARP(device)
	if err != nil {
		return err
	}
	defer socket.Close()
	return sendARP(socket, device, arpPacket(arpRequest, device.HardwareAddr, address, address))
}

// isElsewhere asks as a machine does that is about to take an address (RFC 5227 section 2.1.1: a probe, which teaches
// nobody anything).
func (kernel) isElsewhere(ctx context.Context, address netip.Addr) (bool, error) {
	device, err := deviceFor(address)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if address.Is6() {
		return solicit(ctx, device, address)
	}
	socket, err := openARP(device)
	if err != nil {
		return false, err
	}
	defer socket.Close()
	if err := sendARP(socket, device, arpPacket(arpRequest, device.HardwareAddr, netip.IPv4Unspecified(), address)); err != nil {
		return false, err
	}
	deadline, _ := ctx.Deadline()
	if err := socket.SetReadDeadline(deadline); err != nil {
		return false, err
	}
	buffer := make([]byte, 256)
	for {
		n, err := socket.Read(buffer)
		if err != nil {
			return false, nil // the time is over: nobody answered
		}
		if isAnswer(buffer[:n], device.HardwareAddr, address) {
			return true, nil
		}
	}
}

// arpPacket is one for Ethernet and IPv4 (RFC 826).
func arpPacket(operation uint16, from net.HardwareAddr, sender, target netip.Addr) []byte {
	p := make([]byte, 0, arpBytes)
	p = binary.BigEndian.AppendUint16(p, 1)      // Ethernet
	p = binary.BigEndian.AppendUint16(p, 0x0800) // IPv4
	p = append(p, 6, 4)
	p = binary.BigEndian.AppendUint16(p, operation)
	p = append(p, from...)
	p = append(p, sender.AsSlice()...)
	p = append(p, make([]byte, 6)...)
	return append(p, target.AsSlice()...)
}

// isAnswer says whether a packet claims the address for a machine other than ours.
func isAnswer(p []byte, ours net.HardwareAddr, address netip.Addr) bool {
	return len(p) >= arpBytes && bytes.Equal(p[:6], []byte{0, 1, 8, 0, 6, 4}) &&
		!bytes.Equal(p[8:14], ours) && bytes.Equal(p[14:18], address.AsSlice())
}

// openARP opens a socket for ARP on a device.
func openARP(device *net.Interface) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("ARP: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: device.Index}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ARP on %s: %w", device.Name, err)
	}
	return os.NewFile(uintptr(fd), "ARP on "+device.Name), nil
}

func sendARP(socket *os.File, device *net.Interface, packet []byte) error {
	to := &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: device.Index, Halen: 6}
	copy(to.Addr[:], broadcast)
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		failed = unix.Sendto(int(fd), packet, 0, to)
		return failed != unix.EAGAIN
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("ARP on %s: %w", device.Name, err)
	}
	return nil
}

func networkOrder(x uint16) uint16 {
	return binary.NativeEndian.Uint16([]byte{byte(x >> 8), byte(x)})
}
