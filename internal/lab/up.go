package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kontiki/internal/remains"
)

// Options say what lab to make.
type Options struct {
	Dir             string // where it is kept; must not exist, or be empty
	Program         string // the kontiki that the machines run
	Runtime         string // what runs their containers: runc or simulated
	Servers, Agents int
	DualStack       bool      // machines, pods and Services have addresses of both IP families
	ServerFlags     []string  // more flags of the servers, after those of ServerDefaults
	AgentFlags      []string  // more flags of the agents
	Progress        io.Writer // gets a line for each step
}

// ServerDefaults are flags that a lab's servers have, so that one sees soon what takes long in earnest: snapshots of the raft log
// (10,000 entries otherwise), and that a node is lost (40 s).
var ServerDefaults = []string{"--snapshot-count=200", "--snapshot-interval=2s", "--node-monitor-grace-period=20s"}

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
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if err := refuseOther(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	lock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	l := &Lab{
		Dir: dir, Program: o.Program, Runtime: o.Runtime, Started: time.Now().UTC(), Place: place(),
		ServerFlags: slices.Concat(ServerDefaults, o.ServerFlags), AgentFlags: o.AgentFlags,
	}
	if o.DualStack {
		l.ServerFlags = slices.Concat(ServerDefaults, dualStackFlags, o.ServerFlags)
	}
	for i := range o.Servers {
		l.add(fmt.Sprint("s", i+1), true, o.DualStack)
	}
	for i := range o.Agents {
		l.add(fmt.Sprint("a", i+1), false, o.DualStack)
	}
	if err := l.up(ctx, o.Progress); err != nil {
		l.forgetUnmade()
		return nil, errors.Join(err, l.remove(), os.Remove(filepath.Join(l.Dir, stateFile)))
	}
	return l, nil
}

// add gives the lab one more machine.
func (l *Lab) add(name string, isServer, dualStack bool) {
	address := network.Addr()
	for range 11 + len(l.Hosts) {
		address = address.Next()
	}
	h := &Host{Name: name, Address: address.String(), Server: isServer, lab: l}
	if dualStack {
		h.Address6 = address6(address).String()
	}
	l.Hosts = append(l.Hosts, h)
}

func (l *Lab) up(ctx context.Context, progress io.Writer) error {
	for _, h := range l.Hosts {
		if err := os.MkdirAll(h.dir(), 0o700); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	if err := l.save(); err != nil { // so that down finds what is made from now on
		return err
	}
	if err := l.makeBridge(); err != nil {
		return err
	}
	l.bridged = true
	for _, h := range l.Hosts {
		if err := errors.Join(h.connect(), h.makeCgroup()); err != nil {
			return err
		}
	}
	if err := l.startFirst(ctx); err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s is up at %s\n", l.Hosts[0].Name, l.Hosts[0].url())
	for _, h := range l.Hosts[1:] {
		join, err := l.join(ctx, h)
		if err != nil {
			return err
		}
		if err := h.start(join...); err != nil {
			return err
		}
	}
	return l.awaitNodes(ctx, progress)
}

// startFirst starts the first server, and the front before it.
func (l *Lab) startFirst(ctx context.Context) error {
	first := l.Hosts[0]
	if err := first.start(); err != nil {
		return err
	}
	err := l.await(ctx, first, func(ctx context.Context) error {
		if err := l.writeKubeconfig(); err != nil { // as soon as the server has one
			return err
		}
		client, err := l.client(first.Name)
		if err != nil {
			return err
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		return err
	}
	return l.startFront()
}

// awaitNodes waits until all machines are Ready nodes, and all servers are voters, which may lead when the first one is gone.
func (l *Lab) awaitNodes(ctx context.Context, progress io.Writer) error {
	for _, h := range l.Hosts {
		err := l.await(ctx, h, func(ctx context.Context) error {
			if ready := l.nodes(ctx)[h.Name]; ready != nodeReady {
				return fmt.Errorf("its node is %q", ready)
			}
			if s := h.status(ctx); h.Server && s.Store.Role != roleLeader && s.Store.Role != roleFollower {
				return fmt.Errorf("its store is %q %s", s.Store.Role, s.Trouble)
			}
			return nil
		})
		if err != nil {
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
	cmd := exec.CommandContext(ctx, l.Program, "token", "create", "-q", "--ttl", "10m", "--for", role, "--data-dir", first.DataDir())
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := first.inside(cmd.Run); err != nil {
		return nil, fmt.Errorf("lab: token: %w: %s", err, complaint.String())
	}
	token := strings.TrimSpace(out.String())
	if h.Server {
		return []string{"--join", first.url(), "--token", token}, nil
	}
	return []string{"--token", token}, nil
}

// await calls f until it succeeds; the error has the last of what a machine said when that has ended.
func (l *Lab) await(ctx context.Context, h *Host, f func(context.Context) error) error {
	for {
		err := f(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("lab: %s is not ready: %w: %w", h.Name, ctx.Err(), err)
		case !h.running():
			return fmt.Errorf("lab: %s has ended: %s", h.Name, lastWords(h.logFile()))
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// lastWords are the last lines of a log.
func lastWords(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// Down ends the lab and removes all that is of it.
func (l *Lab) Down() error { return errors.Join(l.remove(), os.RemoveAll(l.Dir)) }

// remove takes away all that is not in the lab's directory.
func (l *Lab) remove() error {
	failed := errors.Join(l.Front.kill(), killAll(l.cgroup()))
	for _, h := range l.Hosts {
		failed = errors.Join(failed, h.Relay.kill(), remains.Unmount(h.dir()))
	}
	return errors.Join(failed, l.removeNetwork(), remains.RemoveCgroups(l.cgroup()))
}
