package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"kontiki/internal/remains"
)

// process is a process of the lab: a machine's kontiki, or one of the lab's own helpers. It outlives the command that started it.
type process struct {
	PID  int    `json:"pid,omitempty"`  // 0: not started
	Mark string `json:"mark,omitempty"` // an argument that no other program has: a pid may be somebody else's by now
}

// state is the process's state by proc(5): R, S, T …; "" if it is gone, or not the lab's.
func (p process) state() string {
	if p.PID == 0 {
		return ""
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	if err != nil || !strings.Contains(string(command), "\x00"+p.Mark+"\x00") {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.SplitN(after, " ", 2)[0]
}

// running says whether it is a live process.
func (p process) running() bool { return p.state() != "" && p.state() != "Z" }

// signal sends a signal, if the process runs.
func (p process) signal(s syscall.Signal) error {
	if !p.running() {
		return nil
	}
	if err := syscall.Kill(p.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("lab: signal %v to %d: %w", s, p.PID, err)
	}
	return nil
}

// awaitEnd waits until the process is gone, and says whether it went in time.
func (p process) awaitEnd(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); p.running(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// kill ends the process at once, and waits until it is gone.
func (p process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.awaitEnd(10 * time.Second) {
		return fmt.Errorf("lab: process %d does not end", p.PID)
	}
	return nil
}

// killAll ends all processes in a cgroup and in those below it.
func killAll(cgroup string) error {
	err := remains.Kill(func(p remains.Process) bool { return strings.Contains(p.Cgroups, "/"+cgroup+"/") })
	if err != nil {
		return fmt.Errorf("lab: cgroup %s: %w", cgroup, err)
	}
	return nil
}
