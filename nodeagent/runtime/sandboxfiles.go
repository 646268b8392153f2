package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// shmSize is the size of a pod's /dev/shm, as Docker and containerd have it.
const shmSize = "64m"

// mountShm makes the /dev/shm that the containers of a pod share with its IPC namespace.
func (s *sandbox) mountShm() error {
	if s.hostIPC() {
		return nil
	}
	dir := filepath.Join(s.dir, "shm")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	const flags = unix.MS_NOEXEC | unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("shm", dir, "tmpfs", flags, "mode=1777,size="+shmSize); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	return nil
}

func (s *sandbox) shmPath() string {
	if s.hostIPC() {
		return "/dev/shm"
	}
	return filepath.Join(s.dir, "shm")
}

// writeEtc writes the files that are bound into every container of the pod. /etc/hosts is
// only for callers that bring none of their own (the node agent does).
func (s *sandbox) writeEtc() error {
	resolv, err := s.resolvConf()
	if err != nil {
		return err
	}
	files := map[string]string{
		"resolv.conf": resolv,
		"hostname":    s.hostname() + "\n",
		"hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// resolvConf is resolv.conf(5) from the request, or the host's when there is none.
func (s *sandbox) resolvConf() (string, error) {
	dns := s.config.GetDnsConfig()
	if dns == nil {
		b, err := os.ReadFile("/etc/resolv.conf")
		if os.IsNotExist(err) {
			return "", nil
		}
		return string(b), err
	}
	var b strings.Builder
	if len(dns.GetSearches()) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(dns.GetSearches(), " "))
	}
	for _, server := range dns.GetServers() {
		fmt.Fprintf(&b, "nameserver %s\n", server)
	}
	if len(dns.GetOptions()) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(dns.GetOptions(), " "))
	}
	return b.String(), nil
}
