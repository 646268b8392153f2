package e2e

import (
	"fmt"
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
	links       int // network interfaces, those of pods among them
	rules       int // lines of all its nftables
}

func (u machineUsage) String() string {
	return fmt.Sprintf("%d MiB, %d descriptors, %d threads, %d mounts, %d processes, %d links, %d lines of rules",
		u.memory, u.descriptors, u.threads, u.mounts, u.processes, u.links, u.rules)
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
			links: strings.Count(s.ok("exec", h.Name, "--", "ip", "-o", "link"), "\n"),
			rules: strings.Count(s.ok("exec", h.Name, "--", "nft", "list", "ruleset"), "\n"),
		}
	}
	return all
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

// noLeak waits until machines have in use what they had before. Memory and descriptors may be more, since caches and
// connections are; a leak of each fault or pod would be far more.
func (s *soak) noLeak(before labUsage) {
	var after labUsage
	defer func() { s.t.Logf("after: %s", after) }()
	eventually(s.t, time.Minute, func() string {
		after = s.usage()
		for machine, now := range after {
			was := before[machine]
			switch {
			case now.mounts > was.mounts, now.processes > was.processes, now.links > was.links, now.rules > was.rules:
				return fmt.Sprintf("%s has %s, and had %s", machine, now, was)
			case now.descriptors > was.descriptors+50, now.threads > was.threads+30, now.memory > was.memory+100:
				return fmt.Sprintf("%s has %s, and had %s", machine, now, was)
			}
		}
		return ""
	})
}
