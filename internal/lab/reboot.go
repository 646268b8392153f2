package lab

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netns"
)

// Reboot has a machine lose what a reset takes, at any moment: its processes, containers among them, its network with the
// link, and all mounts. The files stay, and its kontiki is started again.
func (h *Host) Reboot() error {
	lost := errors.Join(h.Kill(), h.killRest(), h.unmount(), h.disconnect())
	if lost != nil {
		return fmt.Errorf("lab: reboot %s: %w", h.Name, lost)
	}
	return errors.Join(h.connect(), h.Start())
}

// disconnect takes away what connect made, as far as it is there.
func (h *Host) disconnect() error {
	err := netns.DeleteNamed(h.namespace())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, removeLink(h.outer()))
}
