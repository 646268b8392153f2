package nodeagent

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reserved from capacity so that allocatable pods do not drive the node into pressure: the thresholds at which
// MemoryPressure and DiskPressure begin (kubelet's eviction-hard defaults).
const (
	memoryPressureBytes = 100 << 20
	diskPressurePart    = 10 // percent free
)

// machine is what the node is made of, read once, and looks at how it is doing. It is honest about cgroups: an agent in
// a container that may use 2 of 64 CPUs offers 2.
type machine struct {
	dataDir     string
	maxPods     int
	cpuMilli    int64
	memoryBytes int64
	diskBytes   int64

	machineID, systemUUID, bootID, kernel, osImage string
}

func readMachine(dataDir string, maxPods int) (*machine, error) {
	m := &machine{dataDir: dataDir, maxPods: maxPods, cpuMilli: int64(runtime.NumCPU()) * 1000}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return nil, fmt.Errorf("memory of the machine: %w", err)
	}
	m.memoryBytes = int64(info.Totalram) * int64(info.Unit)
	var fs unix.Statfs_t
	if err := unix.Statfs(dataDir, &fs); err != nil {
		return nil, fmt.Errorf("disk of %s: %w", dataDir, err)
	}
	m.diskBytes = int64(fs.Blocks) * fs.Bsize
	m.applyCgroup()
	m.machineID = firstLine("/etc/machine-id")
	m.systemUUID = firstLine("/sys/class/dmi/id/product_uuid")
	if m.systemUUID == "" {
		m.systemUUID = m.machineID
	}
	m.bootID = firstLine("/proc/sys/kernel/random/boot_id")
	m.kernel = firstLine("/proc/sys/kernel/osrelease")
	m.osImage = osRelease()
	return m, nil
}

// applyCgroup lowers CPU and memory to the limits at the root of this process's view of the cgroup tree.
func (m *machine) applyCgroup() {
	if f := strings.Fields(firstLine("/sys/fs/cgroup/cpu.max")); len(f) == 2 { // v2: "max 100000" or "200000 100000"
		m.limitCPU(number(f[0]), number(f[1]))
	}
	m.limitCPU(number(firstLine("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")), number(firstLine("/sys/fs/cgroup/cpu/cpu.cfs_period_us")))
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if n := number(firstLine(file)); n > 0 && n < m.memoryBytes {
			m.memoryBytes = n
		}
	}
}

func (m *machine) limitCPU(quota, period int64) {
	if quota > 0 && period > 0 {
		m.cpuMilli = min(m.cpuMilli, quota*1000/period)
	}
}

// number is 0 for what is not one, "max" above all.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "" // a file that this kernel does not have
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

func osRelease() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "Linux"
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return "Linux"
}

func (m *machine) capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(m.cpuMilli, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(m.memoryBytes, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(m.diskBytes, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(m.maxPods), resource.DecimalSI),
	}
}

func (m *machine) allocatable() corev1.ResourceList {
	list := m.capacity()
	list[corev1.ResourceMemory] = *resource.NewQuantity(max(m.memoryBytes-memoryPressureBytes, 0), resource.BinarySI)
	list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(m.diskBytes/100*(100-diskPressurePart), resource.BinarySI)
	return list
}

// memoryPressure says whether less memory is available than pods may not touch.
func (m *machine) memoryPressure() bool {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
			return number(f[1])<<10 < memoryPressureBytes
		}
	}
	return false
}

// diskPressure says whether the file system of the data directory is nearly full, in bytes or inodes.
func (m *machine) diskPressure() bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(m.dataDir, &fs); err != nil {
		return false
	}
	return fs.Bavail < fs.Blocks/100*diskPressurePart || fs.Files > 0 && fs.Ffree < fs.Files/100*5
}

// pidPressure says whether process ids are nearly used up.
func (m *machine) pidPressure() bool {
	limit := number(firstLine("/proc/sys/kernel/pid_max"))
	f := strings.Fields(firstLine("/proc/loadavg")) // "0.1 0.2 0.3 1/432 12345": running/all
	if limit == 0 || len(f) < 4 {
		return false
	}
	_, all, _ := strings.Cut(f[3], "/")
	return number(all) > limit/10*9
}

// hostname of the machine, for the Node's addresses.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return filepath.Base(strings.ToLower(name))
}
