package runtime

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostLimits is what this machine lets the runtime do, asked once.
type hostLimits struct {
	cgroupV2 bool // unified hierarchy; else v1, maybe with an empty v2 beside it
	// cgroupV2Mount is where v2 is mounted, with controllers or without; empty if it is not.
	cgroupV2Mount string
	swapLimit     bool     // v1: memory.memsw files exist
	minOOMAdj     int      // no process may be made less killable than this
	caps          []string // capabilities that a privileged container can have
}

// probeHost looks at /proc and /sys.
func probeHost() hostLimits {
	var h hostLimits
	for _, mount := range []string{cgroupMount, cgroupMount + "/unified"} {
		var st unix.Statfs_t
		if unix.Statfs(mount, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			h.cgroupV2, h.cgroupV2Mount = mount == cgroupMount, mount
			break
		}
	}
	_, err := os.Stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
	h.swapLimit = err == nil
	mask := ownCapabilities()
	h.caps = capabilityNames(mask)
	h.minOOMAdj = -1000
	if mask&(1<<unix.CAP_SYS_RESOURCE) == 0 {
		// Without it the value can only be raised (proc(5), oom_score_adj).
		b, _ := os.ReadFile("/proc/self/oom_score_adj")
		h.minOOMAdj, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	return h
}

// ownCapabilities is the effective set of this process, as a bit mask.
func ownCapabilities() uint64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if hex, ok := strings.CutPrefix(lines.Text(), "CapEff:\t"); ok {
			mask, _ := strconv.ParseUint(hex, 16, 64)
			return mask
		}
	}
	return 0
}

// command runs a program to its end; what it wrote to stderr explains a failure.
func command(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
