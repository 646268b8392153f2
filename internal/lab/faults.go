package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Faults are what is broken about a machine at present, beyond what its process shows (gone, or paused).
type Faults struct {
	Cut        []string `json:"cut,omitempty"`        // machines that it does not hear, and that do not hear it
	Loss       int      `json:"loss,omitempty"`       // percent of its packets
	Delay      Duration `json:"delay,omitempty"`      // of what it sends
	DiskWrites int      `json:"diskWrites,omitempty"` // per second that its disk makes; 0: as many as it can
	Clock      Duration `json:"clock,omitempty"`      // how far the clock of its kontiki is ahead
}

// String says it in a few words; "" if nothing is broken.
func (f Faults) String() string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(len(f.Cut) > 0, "cut off from %s", strings.Join(f.Cut, ","))
	add(f.Loss > 0, "loses %d%%", f.Loss)
	add(f.Delay > 0, "delay %s", f.Delay)
	add(f.DiskWrites > 0, "disk %d writes/s", f.DiskWrites)
	add(f.Clock > 0, "clock +%s", f.Clock)
	add(f.Clock < 0, "clock %s", f.Clock)
	return strings.Join(all, "; ")
}

// Duration is a time.Duration that JSON has as text.
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes it as time.Duration's String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Partition cuts the lab into groups of machines that do not hear each other. Machines that no group names are in the
// first. What was cut before is healed. The error wraps ErrNoHost for a name that no machine has, and says if one is in
// two groups.
func (l *Lab) Partition(ctx context.Context, groups ...[]string) error {
	group := map[string]int{}
	for i, names := range groups {
		for _, name := range names {
			if _, err := l.Host(name); err != nil {
				return err
			}
			if _, twice := group[name]; twice {
				return fmt.Errorf("lab: %s is in two groups", name)
			}
			group[name] = i
		}
	}
	for _, h := range l.Hosts {
		h.Faults.Cut = nil
		for _, other := range l.Hosts {
			if group[other.Name] != group[h.Name] {
				h.Faults.Cut = append(h.Faults.Cut, other.Name)
			}
		}
		if err := h.losePackets(ctx); err != nil {
			return err
		}
	}
	return l.save()
}

// Loss has a machine lose this share of the packets that come and go, in percent.
func (h *Host) Loss(ctx context.Context, percent int) error {
	if percent < 0 || percent > 100 {
		return fmt.Errorf("lab: a loss of %d percent is not from 0 to 100", percent)
	}
	h.Faults.Loss = percent
	if err := h.losePackets(ctx); err != nil {
		return err
	}
	return h.lab.save()
}

// maxDelay is the longest that packets can wait.
const maxDelay = time.Minute

// Delay has the packets that a machine sends wait so long.
func (h *Host) Delay(d time.Duration) error {
	if d < 0 || d > maxDelay {
		return fmt.Errorf("lab: a delay of %s is not from 0 to %s", d, maxDelay)
	}
	h.Faults.Delay = Duration(d)
	if err := h.delayPackets(d); err != nil {
		return err
	}
	return h.lab.save()
}

// SlowDisk has the disk make so many writes a second at most for the machine's kontiki; 0 for as many as it can. The error
// wraps ErrUnsupported where the data is not on a block device, or the kernel cannot throttle it.
func (h *Host) SlowDisk(writes int) error {
	if writes < 0 {
		return fmt.Errorf("lab: %d writes a second are less than none", writes)
	}
	if err := h.throttleDisk(writes); err != nil {
		return err
	}
	h.Faults.DiskWrites = writes
	return h.lab.save()
}

// SetClock has the clock of the machine's kontiki be so far ahead of the real one, or behind it if negative, from now on
// and when it is started again. Pods keep the real time. The error wraps ErrUnsupported where it cannot be done.
func (h *Host) SetClock(ahead time.Duration) error {
	if ahead%time.Second != 0 || ahead < -maxClock || ahead > maxClock {
		return fmt.Errorf("lab: a clock cannot be moved by %s: only by whole seconds, and by %s at most", ahead, maxClock)
	}
	if h.running() {
		if err := h.moveClock(ahead); err != nil {
			return err
		}
	}
	h.Faults.Clock = Duration(ahead)
	return h.lab.save()
}

// Heal takes back all that was broken: partitions, loss, delays, slow disks, clocks and pauses; machines that were killed run
// again.
func (l *Lab) Heal(ctx context.Context) error {
	var failed error
	for _, h := range l.Hosts {
		failed = errors.Join(failed, h.heal(ctx))
	}
	return errors.Join(failed, l.save(), l.startFront())
}

// heal takes back only what is broken, so that healing what is whole costs nothing.
func (h *Host) heal(ctx context.Context) (failed error) {
	if len(h.Faults.Cut) > 0 || h.Faults.Loss > 0 {
		h.Faults.Cut, h.Faults.Loss = nil, 0
		failed = errors.Join(failed, h.losePackets(ctx))
	}
	if h.Faults.Delay != 0 {
		failed = errors.Join(failed, h.Delay(0))
	}
	if h.Faults.DiskWrites != 0 {
		failed = errors.Join(failed, h.SlowDisk(0))
	}
	if h.Faults.Clock != 0 {
		failed = errors.Join(failed, h.SetClock(0))
	}
	return errors.Join(failed, h.Resume(), h.Start())
}

// cutAddresses are those of the machines that this one does not hear, by nftables' names of the families.
func (h *Host) cutAddresses() map[string][]string {
	addresses := map[string][]string{}
	for _, other := range h.lab.Hosts {
		if slices.Contains(h.Faults.Cut, other.Name) {
			addresses["ip"] = append(addresses["ip"], other.Address)
			if other.Address6 != "" {
				addresses["ip6"] = append(addresses["ip6"], other.Address6)
			}
		}
	}
	return addresses
}
