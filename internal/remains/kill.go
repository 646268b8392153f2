package remains

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is what the kernel says of a process (proc(5)).
type Process struct {
	Args    []string // its command line, one empty string if it has none
	Cgroups string   // a line for each hierarchy, ID:CONTROLLERS:/PATH
}

// Kill ends all processes that are chosen, but for this one and for zombies, and those that come meanwhile. It waits two
// seconds for them to be gone.
func Kill(chosen func(Process) bool) error {
	for range 100 {
		pids := find(chosen)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // who is gone is gone
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("processes do not end")
}

func find(chosen func(Process) bool) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		if pid == os.Getpid() || strings.Contains(string(stat), ") Z ") {
			continue
		}
		if chosen(Process{Args: strings.Split(string(command), "\x00"), Cgroups: string(groups)}) {
			pids = append(pids, pid)
		}
	}
	return pids
}
