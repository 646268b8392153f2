package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// containerPIDs returns the processes that run the test image's server, with the time each was
// started (field 22 of proc(5) stat), so that a reused pid is not taken for the old process.
func containerPIDs() map[int]string {
	pids := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		argv, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.HasPrefix(string(argv), "/hello\x00") || !processAlive(pid) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 19 {
			pids[pid] = fields[19]
		}
	}
	return pids
}
