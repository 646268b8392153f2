package runtime

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/network"
	"kontiki/nodeagent/runtime/shim"
)

// restore finds the sandboxes and containers of an earlier life and cleans up what nobody
// knows any more: directories without a record, mounts, cgroups, addresses.
func (r *Runtime) restore(ctx context.Context) error {
	if err := network.KillOrphans(ctx, r.cfg.sandboxes()); err != nil {
		return err
	}
	if err := r.restoreSandboxes(ctx); err != nil {
		return err
	}
	if err := r.restoreContainers(ctx); err != nil {
		return err
	}
	if err := r.removeStrayCgroups(); err != nil {
		r.log.Warn("stray cgroups", "err", err)
	}
	if err := r.removeStrayMounts(); err != nil {
		r.log.Warn("stray mounts", "err", err)
	}
	r.collectNetwork(ctx)
	return nil
}

func (r *Runtime) restoreSandboxes(ctx context.Context) error {
	entries, err := os.ReadDir(r.cfg.sandboxes())
	if err != nil {
		return err
	}
	for _, e := range entries {
		s := &sandbox{dir: filepath.Join(r.cfg.sandboxes(), e.Name()), config: &runtimeapi.PodSandboxConfig{}}
		found, err := shim.ReadFile(filepath.Join(s.dir, sandboxFile), &s.rec)
		if err == nil && found {
			err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(s.rec.Config, s.config)
		}
		if err != nil || !found || s.rec.ID != e.Name() {
			r.log.Warn("sandbox without a record removed", "sandbox", e.Name(), "err", err)
			if err := r.removeSandboxDebris(ctx, s, e.Name()); err != nil {
				r.log.Warn("sandbox debris", "sandbox", e.Name(), "err", err)
			}
			continue
		}
		if !s.namespaces().alive() {
			s.rec.Stopped = true // the machine was rebooted
		}
		r.sandboxes[s.rec.ID] = s
	}
	return nil
}

// removeSandboxDebris detaches from the network while the namespace is there, unmounts and
// deletes. What the attachment of a vanished namespace held goes with collectNetwork.
func (r *Runtime) removeSandboxDebris(ctx context.Context, s *sandbox, id string) error {
	var detached error
	if s.namespaces().alive() {
		detached = r.network.Detach(ctx, network.Pod{ID: id, NetNS: s.netNS()})
	}
	return errors.Join(detached, r.stopPause(s), s.namespaces().remove(), unmountRemove(filepath.Join(s.dir, "shm")), os.RemoveAll(s.dir))
}

func (r *Runtime) restoreContainers(ctx context.Context) error {
	entries, err := os.ReadDir(r.cfg.containers())
	if err != nil {
		return err
	}
	for _, e := range entries {
		c, err := readContainer(filepath.Join(r.cfg.containers(), e.Name()))
		if err == nil && r.sandboxes[c.rec.SandboxID] == nil {
			err = fmt.Errorf("its sandbox %s is gone", c.rec.SandboxID)
		}
		if err != nil {
			r.log.Warn("container without a record removed", "container", e.Name(), "err", err)
			if err := r.removeContainerDebris(e.Name()); err != nil {
				r.log.Warn("container debris", "container", e.Name(), "err", err)
			}
			continue
		}
		r.containers[c.rec.ID] = c
		r.resume(ctx, c)
	}
	return nil
}

func readContainer(dir string) (*container, error) {
	c := &container{dir: dir, config: &runtimeapi.ContainerConfig{}, exited: make(chan struct{})}
	var content containerFileContent
	found, err := shim.ReadFile(filepath.Join(dir, containerFile), &content)
	if err != nil {
		return nil, err
	}
	if !found || content.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("%s: %w", containerFile, os.ErrNotExist)
	}
	c.rec = content.containerRecord
	return c, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(content.Config, c.config)
}

// resume finds out what became of a container while nobody looked.
func (r *Runtime) resume(ctx context.Context, c *container) {
	var started shim.Started
	if _, err := shim.ReadFile(filepath.Join(c.dir, shim.StartedFile), &started); err != nil {
		r.log.Warn("start record", "container", c.rec.ID, "err", err)
	}
	var exit shim.Exit
	if found, err := shim.ReadFile(filepath.Join(c.dir, shim.ExitFile), &exit); err == nil && found {
		r.setExited(c, started, exit)
		return
	}
	if started.PID != 0 {
		if r.follow(ctx, c, started) != nil {
			r.recordExit(c) // it ended this very moment, or with the machine
		}
		return
	}
	if _, err := os.Stat(filepath.Join(c.dir, shim.SpecFile)); err == nil {
		r.resumeStart(ctx, c)
		return
	}
	c.state = runtimeapi.ContainerState_CONTAINER_CREATED
	if r.sandboxes[c.rec.SandboxID].rec.Stopped {
		r.startFailed(c, errors.New("the machine was restarted before the container"))
	}
}

// startLimit is how long a start that an earlier runtime left may go on.
const startLimit = 10 * time.Second

// resumeStart deals with a container whose start nobody saw the end of. Its shim finds out
// that the runtime died and ends it; the outcome is a failed start, or the exit that the
// shim recorded.
func (r *Runtime) resumeStart(ctx context.Context, c *container) {
	if ended, stop, err := c.shim().Watch(ctx); err == nil {
		select {
		case <-ended:
		case <-time.After(startLimit):
		}
		stop.Close()
	}
	var started shim.Started
	var exit shim.Exit
	_, serr := shim.ReadFile(filepath.Join(c.dir, shim.StartedFile), &started)
	if found, err := shim.ReadFile(filepath.Join(c.dir, shim.ExitFile), &exit); err == nil && serr == nil && found {
		r.setExited(c, started, exit)
		return
	}
	r.startFailed(c, errors.New("the node agent ended during the start"))
}

// removeContainerDebris kills what a container without a record may have left.
func (r *Runtime) removeContainerDebris(id string) error {
	c := &container{dir: filepath.Join(r.cfg.containers(), id)}
	c.rec.ID = id
	r.runcDelete(c)
	return c.removeDir()
}

// idPattern is the form of our ids in cgroup names.
var idPattern = regexp.MustCompile(`^(pod-|shim-)?[0-9a-f]{32}$`)

// removeStrayCgroups kills and removes, below CgroupRoot only, cgroups that are named like
// ours and belong to nothing known.
func (r *Runtime) removeStrayCgroups() error {
	known := map[string]bool{}
	for id := range r.containers {
		known[id] = true
	}
	for id := range r.sandboxes {
		known["pod-"+id], known["shim-"+id] = true, true
	}
	stray := map[string]bool{}
	for _, root := range r.cgroupDirs(r.cfg.CgroupRoot) {
		_ = filepath.WalkDir(root, func(p string, e os.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return nil //nolint:nilerr // cgroups come and go
			}
			name := filepath.Base(p)
			if idPattern.MatchString(name) && !known[name] {
				stray[path.Join(r.cfg.CgroupRoot, strings.TrimPrefix(p, root))] = true
				return filepath.SkipDir
			}
			return nil
		})
	}
	var errs []error
	for p := range stray {
		r.log.Warn("stray cgroup removed", "cgroup", p)
		errs = append(errs, r.removeCgroup(p))
	}
	return errors.Join(errs...)
}

// removeStrayMounts detaches what is mounted below our directories for ids that nobody knows.
func (r *Runtime) removeStrayMounts() error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	var stray []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && r.strayMount(fields[4]) { // proc(5): the fifth is the mount point
			stray = append(stray, fields[4])
		}
	}
	var errs []error
	for _, p := range slices.Backward(stray) { // inner mounts come later
		r.log.Warn("stray mount removed", "path", p)
		errs = append(errs, unmountRemove(p))
	}
	return errors.Join(append(errs, lines.Err())...)
}

func (r *Runtime) strayMount(p string) bool {
	if rest, ok := strings.CutPrefix(p, r.cfg.sandboxes()+"/"); ok {
		id, _, _ := strings.Cut(rest, "/")
		return r.sandboxes[id] == nil
	}
	if rest, ok := strings.CutPrefix(p, r.cfg.containers()+"/"); ok {
		id, _, _ := strings.Cut(rest, "/")
		return r.containers[id] == nil
	}
	return false
}

// collectNetwork frees the addresses of sandboxes that are stopped or unknown (CNI GC).
func (r *Runtime) collectNetwork(ctx context.Context) {
	r.mu.RLock()
	var valid []string
	for id, s := range r.sandboxes {
		if !s.rec.Stopped && !s.hostNetwork() {
			valid = append(valid, id)
		}
	}
	r.mu.RUnlock()
	if err := r.network.GC(ctx, valid); err != nil && !errors.Is(err, network.ErrNotReady) {
		r.log.Warn("network garbage collection", "err", err)
	}
}

// checkNetwork has the CNI plugins look at the pods of an earlier life. What they find is logged and no more: a pod that runs
// is worth more than a plugin's doubt.
func (r *Runtime) checkNetwork(ctx context.Context) {
	r.mu.RLock()
	var alive []*sandbox
	for _, s := range r.sandboxes {
		if !s.rec.Stopped && !s.hostNetwork() {
			alive = append(alive, s)
		}
	}
	r.mu.RUnlock()
	for _, s := range alive {
		if err := r.network.Check(ctx, s.network()); err != nil && ctx.Err() == nil && s.namespaces().alive() {
			r.log.Warn("network of a pod is not as it was made", "sandbox", s.rec.ID, "err", err)
		}
	}
}
