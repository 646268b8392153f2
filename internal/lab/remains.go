package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// unmount takes away all mounts below the machine's directory, the last ones first.
func (h *Host) unmount() error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], h.dir()+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	var failed error
	for _, p := range points {
		if err := syscall.Unmount(p, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			failed = errors.Join(failed, fmt.Errorf("lab: unmount %s: %w", p, err))
		}
	}
	return failed
}
