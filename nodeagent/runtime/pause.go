package runtime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("pause process: %w", err)
	}
	go func() { _ = cmd.Wait() }() // ends with the process, which stopPause kills
	err := pin(fmt.Sprintf("/proc/%d/ns/pid", cmd.Process.Pid), path)
	if err == nil {
		r.mu.Lock()
		s.rec.PausePID = cmd.Process.Pid
		r.mu.Unlock()
		err = s.save()
	}
	if err != nil {
		return "", errors.Join(err, cmd.Process.Kill())
	}
	return path, nil
}

// stopPause kills the pause process, if it is still the one that the pin names: after a
// reboot its number may be anybody's.
func (r *Runtime) stopPause(s *sandbox) error {
	if s.rec.PausePID == 0 {
		return nil
	}
	var pinned, process unix.Stat_t
	if unix.Stat(s.namespaces().path("pid"), &pinned) != nil {
		return nil
	}
	if unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", s.rec.PausePID), &process) != nil {
		return nil
	}
	if pinned.Ino != process.Ino || pinned.Dev != process.Dev {
		return nil
	}
	if err := unix.Kill(s.rec.PausePID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("pause process: %w", err)
	}
	return nil
}
