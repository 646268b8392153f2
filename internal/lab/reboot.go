package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netns"

	"kontiki/internal/remains"
)

// Reboot has a machine lose what a reset takes, at any moment: its processes, containers among them, its network with the
// link, and all mounts. The files stay, what is broken about it as well, and its kontiki is started again.
func (h *Host) Reboot(ctx context.Context) error {
	lost := errors.Join(killAll(h.cgroup()), h.Relay.kill(), remains.Unmount(h.dir()), h.disconnect())
	if lost != nil {
		return fmt.Errorf("lab: reboot %s: %w", h.Name, lost)
	}
	if err := h.connect(); err != nil {
		return err
	}
	broken := h.losePackets(ctx)
	if d := time.Duration(h.Faults.Delay); d > 0 {
		broken = errors.Join(broken, h.delayPackets(d))
	}
	return errors.Join(broken, h.Start())
}

// disconnect takes away what connect made, as far as it is there.
func (h *Host) disconnect() error {
	err := netns.DeleteNamed(h.namespace())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	relayEnd, _ := h.relayEnds()
	return errors.Join(err, removeLink(h.outer()), removeLink(relayEnd))
}
