package runtime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// pidNS returns the path of the sandbox's shared PID namespace, starting its pause process
// if no container needed it before: unlike the other namespaces, a PID namespace ends with
// its process 1 (pid_namespaces(7)). The caller holds s.op.
func (r *Runtime) pidNS(s *sandbox) (string, error) {
	path := s.namespaces().path("pid")
	if s.rec.PausePID != 0 {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return "", err
	}
	cmd := exec.Command(r.cfg.ShimPath, "pause")
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID}
	group, err := r.startInShimCgroup(s.rec.ID, cmd.SysProcAttr)
	if err != nil {
		return "", err
	}
	defer group.Close()
	// It goes on only after a byte came: if this process dies before, so does the new one.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("pause process: %w", err)
	}
	go func() { _ = cmd.Wait() }() // ends with the process, which stopPause kills
	if err := pin(fmt.Sprintf("/proc/%d/ns/pid", cmd.Process.Pid), path); err != nil {
		return "", err
	}
	r.mu.Lock()
	s.rec.PausePID = cmd.Process.Pid
	r.mu.Unlock()
	if err := s.save(); err != nil {
		return "", err
	}
	_, err = stdin.Write([]byte{1})
	return path, err
}

// stopPause ends the sandbox's PID namespace, if it has one: the pause process and whatever
// else is in it. Processes are found by the pin, not by number: after a reboot a number may
// be anybody's.
func (r *Runtime) stopPause(s *sandbox) error {
	path := s.namespaces().path("pid")
	var fs unix.Statfs_t
	var pinned unix.Stat_t
	if unix.Statfs(path, &fs) != nil || fs.Type != unix.NSFS_MAGIC || unix.Stat(path, &pinned) != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(filepath.Join("/proc", e.Name(), "ns/pid"), &st) != nil || st.Ino != pinned.Ino || st.Dev != pinned.Dev {
			continue
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("pause process: %w", err))
		}
	}
	return errors.Join(errs...)
}
