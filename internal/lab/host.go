package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Host is one machine of a lab.
type Host struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Address6 string `json:"address6,omitempty"` // its second one, in a dual-stack lab
	Server   bool   `json:"server"`
	process         // its kontiki
	Faults   Faults `json:"faults"`

	Relay process `json:"relay"` // delays what the machine sends; see delay.go

	lab  *Lab
	made bool // by this process: its network namespace
}

func (h *Host) dir() string       { return filepath.Join(h.lab.Dir, h.Name) }
func (h *Host) logFile() string   { return filepath.Join(h.dir(), "log") }
func (h *Host) namespace() string { return prefix + "-" + h.Name }
func (h *Host) url() string       { return "https://" + h.Address + ":6443" }

// DataDir is the --data-dir of the machine's kontiki.
func (h *Host) DataDir() string { return filepath.Join(h.dir(), "data") }

// arguments are the machine's command line, but for how it joins. Later flags win over earlier ones.
func (h *Host) arguments() []string {
	// An agent that has joined needs to hear again where.
	kind, more := "agent", append([]string{"--server", h.lab.Hosts[0].url()}, h.lab.AgentFlags...)
	if h.Server {
		kind, more = "server", append([]string{"--tls-san", frontAddress.String()}, h.lab.ServerFlags...)
	}
	return append([]string{
		kind, "--data-dir", h.DataDir(), "--node-name", h.Name, "--node-ip", h.nodeIP(),
		"--cgroup-root", h.podsCgroup(), "--node-runtime", h.lab.Runtime,
	}, more...)
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
	cmd := exec.Command(h.lab.Program, slices.Concat(h.arguments(), join)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, h.dir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Ptrace: h.Faults.Clock != 0}
	if err := h.run(cmd, h.startClock); err != nil {
		return fmt.Errorf("lab: start %s: %w", h.Name, err)
	}
	h.process = process{PID: cmd.Process.Pid, Mark: h.DataDir()}
	go func() { _ = cmd.Wait() }() // reaped if it ends while this process runs; init does it later
	return h.lab.save()
}

// run starts a command on the machine: in its network and in its cgroup. then, if not nil, is called on the thread that has
// started it. After an error nothing runs.
func (h *Host) run(cmd *exec.Cmd, then func(*exec.Cmd) error) error {
	return h.inside(func() error {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		done, err := h.enterCgroup(cmd.SysProcAttr)
		defer done()
		if err != nil {
			return err
		}
		return startAnd(cmd, then)
	})
}

// startAnd starts a command and calls then, if it is not nil. One for which that fails is ended, before anybody knows of it.
func startAnd(cmd *exec.Cmd, then func(*exec.Cmd) error) error {
	if err := cmd.Start(); err != nil || then == nil {
		return err
	}
	err := then(cmd)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its end is no news
	}
	return err
}

// inside runs f on a thread in the machine's network namespace.
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

// Kill ends the machine's kontiki at once, as a crash does: nothing is told, nothing is written. Its containers run on.
func (h *Host) Kill() error { return h.process.kill() }

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

// Exec runs a command in the machine's network and cgroup, with this process's standard streams. kontiki and kubectl in it are
// the lab's, the former's commands are about this machine. The error is the command's.
func (h *Host) Exec(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.lab.Kubeconfig(), DataDirEnv+"="+h.DataDir(),
		"PATH="+filepath.Dir(h.lab.Program)+":"+os.Getenv("PATH"))
	if path, err := lookPath(argv[0], filepath.Dir(h.lab.Program)); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	if err := h.run(cmd, nil); err != nil {
		return err
	}
	return cmd.Wait()
}

// DataDirEnv is the variable that names the data directory to kontiki's commands, where --data-dir does not.
const DataDirEnv = "KONTIKI_DATA_DIR"

// lookPath finds a program in a directory, or else on PATH.
func lookPath(name, dir string) (string, error) {
	path := filepath.Join(dir, name)
	if filepath.Base(name) == name && unix.Access(path, unix.X_OK) == nil {
		return path, nil
	}
	return exec.LookPath(name)
}
