package memory

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadOnlyMappings(t *testing.T) {
	const smaps = `00400000-0292c000 r-xp 00000000 fe:00 12345                              /usr/bin/kontiki
Rss:               30000 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0292c000-04f6b000 r--p 0252c000 fe:00 12345                              /usr/bin/kontiki
Anonymous:             0 kB
04f6b000-04f70000 r--p 0252c000 fe:00 12345                              /usr/bin/kontiki
Anonymous:            20 kB
04f70000-050b2000 rw-p 04b6a000 fe:00 12345                              /usr/bin/kontiki
Anonymous:             0 kB
050b2000-05108000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 999                        /usr/lib/libc.so
Anonymous:             0 kB
`
	require.Equal(t, []mapping{{0x400000, 0x292c000}, {0x292c000, 0x4f6b000}}, readOnly([]byte(smaps), "/usr/bin/kontiki"))
}

// The test goes on after its own program was dropped, with less of it in memory.
func TestDropProgram(t *testing.T) {
	before := residentFile(t)
	dropProgram()
	require.Less(t, residentFile(t), before)
}

// residentFile is how much of the files that the process maps is in memory, in KiB.
func residentFile(t *testing.T) (kib int) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("the system does not tell what is in memory: ", err)
	}
	_, rest, found := strings.Cut(string(status), "RssFile:")
	require.True(t, found)
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib
}
