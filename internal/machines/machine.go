package machines

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Machine is a computer with Debian on it. Its methods are called by one goroutine at a time, Run by any number.
type Machine struct {
	Name    string
	Address string // IPv4, in a /24

	lan  *LAN
	root string // its file system
	log  string // what its console said

	nspawn *exec.Cmd
	ended  chan struct{} // closed when nspawn has ended; nil before the machine was ever on
}

//go:embed image.sh
var imageScript []byte

// MakeImage makes what machines are copies of in dir, unless it is there: a minute, and a Debian mirror.
func MakeImage(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-s", dir)
	cmd.Stdin = bytes.NewReader(imageScript)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the image of a machine: %w: %s", err, out)
	}
	return nil
}

// New makes a machine below dir, a copy of the image, without power. The directory bin is copied to its /root/bin.
func New(ctx context.Context, lan *LAN, name, address, image, bin, dir string) (*Machine, error) {
	m := &Machine{Name: name, Address: address, lan: lan, root: filepath.Join(dir, name), log: filepath.Join(dir, name+".console")}
	network := fmt.Sprintf("[Match]\nName=host0\n[Network]\nAddress=%s/24\nGateway=%s254\n", address, address[:strings.LastIndex(address, ".")+1])
	err := errors.Join(copyTree(ctx, image, m.root), copyTree(ctx, bin, filepath.Join(m.root, "root/bin")),
		os.WriteFile(filepath.Join(m.root, "etc/systemd/network/10-host0.network"), []byte(network), 0o644))
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	return m, nil
}

func copyTree(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

// boot starts nspawn in a mount namespace of its own, whose /run it may clean up as it likes when the machine reboots, in
// cgroups of its own, which are the machine's root, and in the LAN.
const boot = `
for hierarchy in /sys/fs/cgroup/*/; do
	group=$hierarchy/$CGROUP
	mkdir -p $group
	for file in cpuset.cpus cpuset.mems; do if [ -e $group/$file ]; then cat $hierarchy/$file >$group/$file; fi; done
	echo $$ >$group/cgroup.procs
done
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
exec nsenter --net=/run/netns/$LAN systemd-nspawn --keep-unit --register=no --boot --directory="$ROOT" --machine="$NAME" --hostname="$NAME" \
	--network-veth --network-bridge=lan0 --capability=all --resolv-conf=off --timezone=off --link-journal=no --console=pipe`

func (m *Machine) cgroup() string { return m.lan.namespace + "-" + m.Name }

// PowerOn boots the machine and waits until systemd has started everything.
func (m *Machine) PowerOn(ctx context.Context) error {
	if err := m.start(); err != nil {
		return err
	}
	return m.AwaitBoot(ctx, "")
}

func (m *Machine) start() error {
	console, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	m.nspawn = exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", boot)
	m.nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes", "SYSTEMD_SECCOMP=0",
		"ROOT="+m.root, "NAME="+m.Name, "LAN="+m.lan.namespace, "CGROUP="+m.cgroup())
	m.nspawn.Stdout, m.nspawn.Stderr = console, console
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := m.nspawn.Start(); err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	ended := make(chan struct{})
	m.ended = ended
	go func() { // ends with nspawn, which Cut and PowerOff wait for
		defer close(ended)
		_ = m.nspawn.Wait()
	}()
	return nil
}

// rebooting is the exit code of nspawn for a machine that wants to be booted again (systemd-nspawn(1), --keep-unit).
const rebooting = 133

// Boot tells one boot of the machine from another; empty while it is off or about to boot.
func (m *Machine) Boot() string {
	init, _ := m.init()
	return init
}

// AwaitBoot waits until another boot than the one before has started everything.
func (m *Machine) AwaitBoot(ctx context.Context, before string) error {
	for {
		if now := m.Boot(); now != "" && now != before {
			out, _ := m.Run(ctx, "systemctl is-system-running --wait")
			if strings.HasPrefix(out, "running") {
				return nil
			}
			if strings.HasPrefix(out, "degraded") {
				failed, _ := m.Run(ctx, "systemctl --failed")
				return fmt.Errorf("machine %s: %s", m.Name, failed)
			}
		}
		select {
		case <-m.ended:
			if m.nspawn.ProcessState.ExitCode() != rebooting {
				return fmt.Errorf("machine %s has ended: %s", m.Name, m.Console())
			}
			if err := m.start(); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("machine %s does not boot: %w: %s", m.Name, context.Cause(ctx), m.Console())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Console is what the machine said there.
func (m *Machine) Console() string {
	text, _ := os.ReadFile(m.log)
	return string(text)
}

// Run runs a shell script as root in /root and returns what it printed. An exit code that is not 0 is an error.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	init, err := m.init()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--target", init, "--all", "env", "-i", "HOME=/root",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "bash", "-c", "cd /root; "+script)
	cmd.WaitDelay = time.Second // for what the script leaves running with its output
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s# %s: %w: %s", m.Name, script, err, out)
	}
	return string(out), err
}

// ErrOff is returned of a machine that has no power.
var ErrOff = errors.New("the machine is off")

// init is the pid of the machine's first process, the only child of nspawn.
func (m *Machine) init() (string, error) {
	if m.ended == nil {
		return "", ErrOff
	}
	select {
	case <-m.ended:
		return "", ErrOff
	default:
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.nspawn.Process.Pid))
	if words := strings.Fields(string(children)); err == nil && len(words) == 1 {
		return words[0], nil
	}
	return "", fmt.Errorf("machine %s: boots", m.Name)
}

// AwaitOff waits until the machine has switched itself off.
func (m *Machine) AwaitOff(ctx context.Context) error {
	select {
	case <-m.ended:
		return m.removeCgroups()
	case <-ctx.Done():
		return fmt.Errorf("machine %s is still on: %w", m.Name, context.Cause(ctx))
	}
}

// Cut takes the machine's power away: all of its processes are gone at once.
func (m *Machine) Cut() error {
	init, err := m.init()
	if errors.Is(err, ErrOff) {
		return m.removeCgroups()
	}
	if err == nil {
		var pid int
		if _, err = fmt.Sscan(init, &pid); err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL) // and with the first process of a PID namespace all others (pid_namespaces(7))
		}
	}
	if err != nil {
		err = errors.Join(err, m.nspawn.Process.Kill())
	}
	<-m.ended
	return errors.Join(err, m.removeCgroups())
}

// removeCgroups removes what is left of the machine's cgroups, deepest first.
func (m *Machine) removeCgroups() error {
	groups, err := filepath.Glob("/sys/fs/cgroup/*/" + m.cgroup())
	if err != nil || len(groups) == 0 {
		return err
	}
	out, err := exec.Command("find", append(groups, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cgroups of machine %s: %w: %s", m.Name, err, out)
	}
	return nil
}
