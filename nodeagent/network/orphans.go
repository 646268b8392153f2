package network

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// KillOrphans ends plugins that an agent left running when it was killed: one that allocates
// an address after GC would leak it. They are told by the environment that the CNI spec
// gives to plugins: CNI_NETNS lies in dir, where the agent keeps its namespaces. It waits until
// they are gone, or ctx ends.
func KillOrphans(ctx context.Context, dir string) error {
	mark := []byte("CNI_NETNS=" + dir + "/")
	for {
		pids := processesWith(mark)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // gone already is as good
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// processesWith finds the processes whose environment has an entry that begins with mark.
func processesWith(mark []byte) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // a fixed, good pattern
	var out []int
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !hasEntry(env, mark) {
			continue // ended meanwhile, or a zombie, or another's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// hasEntry says whether one of the NUL-terminated entries begins with mark.
func hasEntry(env, mark []byte) bool {
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.HasPrefix(entry, mark) {
			return true
		}
	}
	return false
}
