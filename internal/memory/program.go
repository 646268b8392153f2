package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgram unmaps the pages of the program's own file, code and constants, from the process. Those in use come back with the
// next use, from the page cache, sixteen at a time; what the start alone has needed does not, and of a program with a
// Kubernetes in it that is the larger part. It does nothing where the system does not tell what is mapped.
func dropProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, r := range readOnly(maps, program) {
		// An error leaves the pages where they are.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// readOnly finds the mappings of a file in a /proc/PID/smaps (proc_pid_smaps(5)) that can be dropped: they cannot be written,
// and no page has been (a loader that relocates a program does that, before it takes the right to).
func readOnly(smaps []byte, file string) []mapping {
	var out []mapping
	var at mapping
	candidate := false
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		var m mapping
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.start, &m.end); err == nil && len(fields) >= 5 {
			at, candidate = m, len(fields) == 6 && fields[5] == file && !strings.Contains(fields[1], "w")
		} else if candidate && fields[0] == "Anonymous:" && fields[1] == "0" {
			out = append(out, at)
		}
	}
	return out
}
