package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Options say what lab to make.
type Options struct {
	Dir             string // where it is kept; must not exist, or be empty
	Program         string // the kontiki that the machines run
	Runtime         string // what runs their containers: runc or simulated
	Servers, Agents int
	Progress        io.Writer // gets a line for each step
}

// maxHosts is how many machines the network has room for.
const maxHosts = 200

// Up makes a lab and returns it when all its nodes are Ready. After an error nothing is left of it but, in Dir, the logs.
func Up(ctx context.Context, o Options) (*Lab, error) {
	if o.Servers < 1 || o.Agents < 0 || o.Servers+o.Agents > maxHosts {
		return nil, fmt.Errorf("lab: %d servers and %d agents: there must be a server, and at most %d machines", o.Servers, o.Agents, maxHosts)
	}
	if _, err := Open(o.Dir); !errors.Is(err, ErrNoLab) {
		return nil, errors.Join(ErrUp, err)
	}
	l := &Lab{Dir: o.Dir, Program: o.Program, Runtime: o.Runtime, Started: time.Now().UTC()}
	l.Cgroups = prefix + "-" + strconv.FormatInt(l.Started.UnixNano(), 36)
	for i := range o.Servers {
		l.add(fmt.Sprint("s", i+1), true)
	}
	for i := range o.Agents {
		l.add(fmt.Sprint("a", i+1), false)
	}
	if err := l.up(ctx, o.Progress); err != nil {
		return nil, errors.Join(err, l.stopAll(), l.removeNetwork(), os.Remove(filepath.Join(l.Dir, stateFile)))
	}
	return l, nil
}

// add gives the lab one more machine.
func (l *Lab) add(name string, isServer bool) {
	address := network.Addr()
	for range 11 + len(l.Hosts) {
		address = address.Next()
	}
	l.Hosts = append(l.Hosts, &Host{Name: name, Address: address.String(), Server: isServer, lab: l})
}

func (l *Lab) up(ctx context.Context, progress io.Writer) error {
	for _, h := range l.Hosts {
		if err := os.MkdirAll(h.dir(), 0o700); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	if err := l.save(); err != nil {
		return err
	}
	if err := makeBridge(); err != nil {
		return err
	}
	for _, h := range l.Hosts {
		if err := h.connect(); err != nil {
			return err
		}
	}
	first := l.Hosts[0]
	if err := first.start(); err != nil {
		return err
	}
	if err := l.await(ctx, first, "get", "--raw", "/readyz"); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s is up at %s\n", first.Name, first.url())
	for _, h := range l.Hosts[1:] {
		join, err := l.join(ctx, h)
		if err != nil {
			return err
		}
		if err := h.start(join...); err != nil {
			return err
		}
	}
	for _, h := range l.Hosts {
		if err := l.await(ctx, h, "wait", "--for=condition=Ready", "node/"+h.Name, "--timeout=1s"); err != nil {
			return err
		}
		fmt.Fprintf(progress, "%s is Ready\n", h.Name)
	}
	return nil
}

// join asks the first server for a token, and returns the flags with which a machine joins by it.
func (l *Lab) join(ctx context.Context, h *Host) ([]string, error) {
	first, role := l.Hosts[0], "agent"
	if h.Server {
		role = "server"
	}
	cmd := exec.CommandContext(ctx, l.Program, "token", "create", "-q", "--ttl", "10m", "--for", role, "--data-dir", first.dataDir())
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := first.inside(cmd.Run); err != nil {
		return nil, fmt.Errorf("lab: token: %w: %s", err, complaint.String())
	}
	token := strings.TrimSpace(out.String())
	if h.Server {
		return []string{"--join", "https://" + first.Address + ":2380", "--token", token}, nil
	}
	return []string{"--server", first.url(), "--token", token}, nil
}

// await runs kubectl until it works; the error has the last of what a machine said when that has ended.
func (l *Lab) await(ctx context.Context, h *Host, args ...string) error {
	for {
		written := l.writeKubeconfig() // as soon as the first server has one
		cmd := exec.CommandContext(ctx, l.Program, append([]string{"kubectl", "--kubeconfig", l.Kubeconfig()}, args...)...)
		out, err := cmd.CombinedOutput()
		switch err = errors.Join(written, err); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("lab: %s is not ready: %w: %s", h.Name, ctx.Err(), out)
		case !h.running():
			return fmt.Errorf("lab: %s has ended: %s", h.Name, h.lastWords())
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// lastWords are the last lines of the machine's log.
func (h *Host) lastWords() string {
	data, err := os.ReadFile(h.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// Down ends the lab and removes all that is of it.
func (l *Lab) Down() error {
	return errors.Join(l.stopAll(), l.removeNetwork(), l.removeCgroups(), os.RemoveAll(l.Dir))
}

// stopAll ends every process of the lab: each machine's kontiki, and what it ran.
func (l *Lab) stopAll() error {
	var failed error
	for _, h := range l.Hosts {
		failed = errors.Join(failed, h.Kill())
	}
	for _, h := range l.Hosts {
		failed = errors.Join(failed, h.killRest(), h.unmount())
	}
	return failed
}

// killRest ends the containers and their shims: all processes that are in the machine's cgroup, or name its directory.
func (h *Host) killRest() error {
	for range 50 {
		pids := h.processes()
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("lab: processes of %s do not end", h.Name)
}

func (h *Host) processes() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		if pid == os.Getpid() || strings.Contains(string(stat), ") Z ") {
			continue
		}
		if strings.Contains(string(groups), "/"+h.cgroup()+"/") || strings.Contains(string(command), h.dir()+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}
