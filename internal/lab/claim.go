package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netns"
)

// Names of a lab are the same whatever directory it is in, and those of namespaces are shared by all network namespaces of a
// machine. So before it makes anything, up looks for another lab; and when it fails it takes away what it has made, and no more.

// refuseOther returns ErrOther if a process runs in a namespace with the name of a lab's machine. Names without a process are
// what a lab has left that was not ended, and the bridge with them; they are taken away.
func refuseOther() error {
	names, err := filepath.Glob(filepath.Join(namedNamespaces, prefix+"-*"))
	if err != nil {
		return err
	}
	inhabited := map[string]string{} // the command in a namespace, by the namespace's number
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, p := range processes { // one that ends meanwhile has neither
		space, _ := os.Readlink(filepath.Join(p, "ns", "net"))
		command, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		inhabited[space] = strings.TrimSpace(filepath.Base(p) + " " + strings.ReplaceAll(string(command), "\x00", " "))
	}
	for _, name := range names {
		var stat syscall.Stat_t
		if err := syscall.Stat(name, &stat); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		if command, found := inhabited[fmt.Sprintf("net:[%d]", stat.Ino)]; found {
			return fmt.Errorf("%w: in %s runs process %s", ErrOther, name, command)
		}
	}
	for _, name := range names {
		if err := netns.DeleteNamed(filepath.Base(name)); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return removeLink(bridgeName)
}

// namedNamespaces is where names of network namespaces are, also those of `ip netns`.
const namedNamespaces = "/run/netns"

// forgetUnmade takes those machines out of the lab that have not got a namespace: what has their names is another's.
func (l *Lab) forgetUnmade() {
	l.Hosts = slices.DeleteFunc(l.Hosts, func(h *Host) bool { return !h.made })
}
