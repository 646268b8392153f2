package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/lab"
)

// machineUsage is what a machine of the lab has in use.
type machineUsage struct {
	memory      int // MiB that its kontiki has in memory for itself
	descriptors int
	threads     int
	mounts      int
	processes   int // in its cgroup: its kontiki, shims, containers
	cgroups     int // below its own, of all hierarchies
	links       int // network interfaces, those of pods among them
	rules       int // lines of all its nftables
	flows       int // that its connection tracking knows
	goroutines  int // of a server; an agent does not say
}

func (u machineUsage) String() string {
	return fmt.Sprintf("%d MiB, %d descriptors, %d threads, %d goroutines, %d mounts, %d processes, %d cgroups, %d links, %d lines of rules, %d flows",
		u.memory, u.descriptors, u.threads, u.goroutines, u.mounts, u.processes, u.cgroups, u.links, u.rules, u.flows)
}

// labUsage is that of all machines.
type labUsage map[string]machineUsage

func (u labUsage) String() string {
	var lines []string
	for _, machine := range soakMachines {
		lines = append(lines, "\n    "+machine+": "+u[machine].String())
	}
	return strings.Join(lines, "")
}

// goroutines are those of all machines: the one whose controllers work has most, and which one that is changes.
func (u labUsage) goroutines() (sum int) {
	for _, machine := range u {
		sum += machine.goroutines
	}
	return sum
}

// usage looks at all machines.
func (s *soak) usage() labUsage {
	opened, err := lab.Open(s.dir)
	require.NoError(s.t, err)
	all := labUsage{}
	for _, h := range opened.Hosts {
		proc := fmt.Sprintf("/proc/%d", h.PID)
		descriptors, _ := filepath.Glob(filepath.Join(proc, "fd", "*"))
		mounts, _ := os.ReadFile(filepath.Join(proc, "mountinfo"))
		all[h.Name] = machineUsage{
			memory: statusField(proc, "RssAnon:") >> 10, threads: statusField(proc, "Threads:"),
			descriptors: len(descriptors), mounts: strings.Count(string(mounts), "\n"), processes: s.processes(h.Name),
			links:   strings.Count(s.ok("exec", h.Name, "--", "ip", "-o", "link"), "\n"),
			rules:   strings.Count(s.ok("exec", h.Name, "--", "nft", "list", "ruleset"), "\n"),
			flows:   number(s.ok("exec", h.Name, "--", "cat", "/proc/sys/net/netfilter/nf_conntrack_count")),
			cgroups: s.cgroups(h.Name), goroutines: s.serverGoroutines(h),
		}
	}
	return all
}

func number(text string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(text))
	return n
}

// serverGoroutines asks a server's metrics.
func (s *soak) serverGoroutines(h *lab.Host) int {
	if !h.Server {
		return 0
	}
	out, err := s.kubectl(h.Name, "get", "--raw", "/metrics")
	require.NoError(s.t, err, out)
	_, after, found := strings.Cut(out, "\ngo_goroutines ")
	require.True(s.t, found)
	count, _, _ := strings.Cut(after, "\n")
	return number(count)
}

// cgroups counts those below a machine's.
func (s *soak) cgroups(machine string) (n int) {
	roots, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", s.group, machine)) // version 1, or a hybrid
	more, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", s.group, machine))
	for _, root := range append(roots, more...) {
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && path != root {
				n++
			}
			return nil // what goes meanwhile is not there
		})
	}
	return n
}

// statusField is a number of proc_pid_status(5).
func statusField(proc, name string) int {
	status, _ := os.ReadFile(filepath.Join(proc, "status"))
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	return 0
}

// processes counts those in a machine's cgroup.
func (s *soak) processes(machine string) (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if groups, _ := os.ReadFile(filepath.Join(dir, "cgroup")); processAlive(pid) && strings.Contains(string(groups), s.group+"/"+machine+"/") {
			n++
		}
	}
	return n
}

// noLeak waits until machines have in use what they had before. Memory, descriptors and goroutines may be more, since caches and
// connections are, and so may flows, which are remembered for two minutes after their end; a leak of each fault or pod would be
// far more.
func (s *soak) noLeak(before labUsage) {
	var after labUsage
	defer func() { s.t.Logf("after: %s", after) }()
	eventually(s.t, time.Minute, func() string {
		after = s.usage()
		for machine, now := range after {
			was := before[machine]
			switch {
			case now.mounts > was.mounts, now.processes > was.processes, now.links > was.links, now.rules > was.rules, now.cgroups > was.cgroups:
				return fmt.Sprintf("%s has %s, and had %s", machine, now, was)
			case now.flows > was.flows+2000: // a connection a pod and a probe a second make a few hundred
				return fmt.Sprintf("%s has %s, and had %s", machine, now, was)
			case now.descriptors > was.descriptors+50, now.threads > was.threads+30, now.memory > was.memory+100:
				return fmt.Sprintf("%s has %s, and had %s", machine, now, was)
			}
		}
		if now, was := after.goroutines(), before.goroutines(); now > was+500 {
			return fmt.Sprintf("the servers have %d goroutines, and had %d", now, was)
		}
		return ""
	})
}
