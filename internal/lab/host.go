package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
)

// Host is one machine of a lab.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Server  bool   `json:"server"`
	PID     int    `json:"pid"` // of its kontiki; 0: not started

	lab *Lab
}

func (h *Host) dir() string       { return filepath.Join(h.lab.Dir, h.Name) }
func (h *Host) dataDir() string   { return filepath.Join(h.dir(), "data") }
func (h *Host) logFile() string   { return filepath.Join(h.dir(), "log") }
func (h *Host) namespace() string { return prefix + "-" + h.Name }
func (h *Host) url() string       { return "https://" + h.Address + ":6443" }
func (h *Host) cgroup() string    { return h.lab.Cgroups + "-" + h.Name }

// arguments are the machine's command line, but for how it joins. An agent that has joined needs to hear again where.
func (h *Host) arguments() []string {
	kind := "agent"
	if h.Server {
		kind = "server"
	}
	return []string{
		kind, "--data-dir", h.dataDir(), "--node-name", h.Name, "--node-ip", h.Address,
		"--cgroup-root", h.cgroup(), "--node-runtime", h.lab.Runtime,
	}
}

// start runs the machine's kontiki, which goes on when this process ends. join is how it gets into the cluster; a machine
// that is in it already needs none.
func (h *Host) start(join ...string) error {
	if h.running() {
		return nil
	}
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(h.lab.Program, append(h.arguments(), join...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, h.dir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := h.inside(cmd.Start); err != nil {
		return fmt.Errorf("lab: start %s: %w", h.Name, err)
	}
	h.PID = cmd.Process.Pid
	go func() { _ = cmd.Wait() }() // reaped if it ends while this process runs; init does it later
	return h.lab.save()
}

// inside runs f on a thread in the machine's network namespace: what f starts runs there.
func (h *Host) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		space, err := netns.GetFromName(h.namespace())
		if err == nil {
			defer space.Close()
			err = netns.Set(space)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// running says whether the machine's kontiki is a live process. A pid that another program has by now does not count.
func (h *Host) running() bool { return h.state() != "" && h.state() != "Z" }

// state is the process's state by proc(5): R, S, T …; "" if it is gone, or not the lab's.
func (h *Host) state() string {
	if h.PID == 0 {
		return ""
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", h.PID))
	if err != nil || !strings.Contains(string(command), "\x00"+h.dataDir()+"\x00") {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.PID))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.SplitN(after, " ", 2)[0]
}

// signal sends a signal to the machine's kontiki, if it runs.
func (h *Host) signal(s syscall.Signal) error {
	if !h.running() {
		return nil
	}
	if err := syscall.Kill(h.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("lab: %s: %w", h.Name, err)
	}
	return nil
}

// awaitEnd waits until the machine's kontiki is gone, and says whether it went in time.
func (h *Host) awaitEnd(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); h.running(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// Kill ends the machine's kontiki at once, as a crash does: nothing is told, nothing is written. Its containers run on.
func (h *Host) Kill() error {
	if err := h.signal(syscall.SIGKILL); err != nil {
		return err
	}
	h.awaitEnd(10 * time.Second)
	return nil
}

// Stop ends the machine's kontiki as a shutdown does.
func (h *Host) Stop() error {
	if err := errors.Join(h.signal(syscall.SIGTERM), h.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	if !h.awaitEnd(30 * time.Second) {
		return h.Kill()
	}
	return nil
}

// Start runs the machine's kontiki again.
func (h *Host) Start() error { return h.start() }

// Pause stops the machine's kontiki where it stands, as a machine that hangs; Resume lets it go on.
func (h *Host) Pause() error { return h.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (h *Host) Resume() error { return h.signal(syscall.SIGCONT) }

// Exec runs a command in the machine's network, with this process's standard streams. The error is the command's.
func (h *Host) Exec(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.lab.Kubeconfig(), "PATH="+filepath.Dir(h.lab.Program)+":"+os.Getenv("PATH"))
	return h.inside(cmd.Run)
}
