package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	// maxFrame is the largest that a link hands over: many segments in one (GSO), with the header in front.
	maxFrame = 1<<16 + 256
	// relayQueue is how many frames wait at most; more are lost, as in a router whose buffer is full.
	relayQueue = 4096
)

// Relay carries frames between two interfaces until ctx ends; those from the first one wait so long before. It writes a line
// to ready when it has begun.
func Relay(ctx context.Context, from, to string, delay time.Duration, ready io.Writer, log *slog.Logger) error {
	a, err := packetSocket(from)
	if err != nil {
		return err
	}
	defer unix.Close(a)
	b, err := packetSocket(to)
	if err != nil {
		return err
	}
	defer unix.Close(b)
	if _, err := io.WriteString(ready, readyLine); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return carry(ctx, a, b, delay, log.With("from", from)) })
	group.Go(func() error { return carry(ctx, b, a, 0, log.With("from", to)) })
	return group.Wait()
}

// packetSocket opens an interface for raw frames (packet(7)). In front of each frame is a virtio_net_hdr, which says what the
// sender left to its network card, checksums and segmentation: what is carried on with it is still to be done.
func packetSocket(name string) (int, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return 0, fmt.Errorf("lab: %s: %w", name, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // nothing is received before it is bound
	if err != nil {
		return 0, fmt.Errorf("lab: packet socket: %w", err)
	}
	second := unix.NsecToTimeval(int64(time.Second / 4)) // how soon the relay sees that it is to end
	for _, set := range []func() error{
		func() error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1) },
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) },
		func() error { return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &second) },
		func() error {
			return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: device.Index})
		},
	} {
		if err := set(); err != nil {
			return 0, errors.Join(fmt.Errorf("%w: relay frames of %s: %w", ErrUnsupported, name, err), unix.Close(fd))
		}
	}
	return fd, nil
}

func bigEndian(n uint16) uint16 { return n<<8 | n>>8 }

// waiting is a frame that is under way.
type waiting struct {
	due   time.Time
	frame []byte
}

// carry takes what one socket receives to the other, each frame a while later, in order.
func carry(ctx context.Context, from, to int, delay time.Duration, log *slog.Logger) error {
	queue := make(chan waiting, relayQueue) // full: frames are lost
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return deliver(ctx, queue, to, log) })
	group.Go(func() error {
		buffer := make([]byte, maxFrame)
		for ctx.Err() == nil {
			n, err := unix.Read(from, buffer)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENETDOWN) {
				continue
			}
			if err != nil {
				return fmt.Errorf("lab: relay: %w", err)
			}
			select {
			case queue <- waiting{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}:
			default:
			}
		}
		return ctx.Err()
	})
	return group.Wait()
}

// deliver sends frames when they are due. One that cannot be sent is lost.
func deliver(ctx context.Context, queue <-chan waiting, to int, log *slog.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w := <-queue:
			if left := time.Until(w.due); left > 0 {
				select {
				case <-time.After(left):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if _, err := unix.Write(to, w.frame); err != nil {
				log.Debug("a frame is lost", "err", err, "bytes", len(w.frame))
			}
		}
	}
}
