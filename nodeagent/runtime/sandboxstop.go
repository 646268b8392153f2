package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StopPodSandbox kills what still runs in the sandbox and gives back its network. It may be
// repeated, and an unknown sandbox counts as stopped (CRI).
func (r *Runtime) StopPodSandbox(ctx context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	s, err := r.sandbox(req.GetPodSandboxId())
	if errors.Is(err, ErrNotFound) {
		return &runtimeapi.StopPodSandboxResponse{}, nil
	}
	s.op.Lock()
	defer s.op.Unlock()
	return &runtimeapi.StopPodSandboxResponse{}, r.stopSandbox(ctx, s)
}

// stopSandbox does the work; the caller holds s.op. The sandbox counts as stopped first, so
// that no container starts any more; if freeing fails, a repeated call tries again.
func (r *Runtime) stopSandbox(ctx context.Context, s *sandbox) error {
	if s.rec.Released {
		return nil
	}
	if err := r.markSandbox(s, &s.rec.Stopped); err != nil {
		return err
	}
	var g errgroup.Group
	for _, c := range r.containersOf(s.rec.ID) {
		g.Go(func() error { return r.kill(ctx, c) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("stop sandbox %s: %w", s.rec.ID, err)
	}
	if err := r.tearDown(ctx, s); err != nil {
		return fmt.Errorf("stop sandbox %s: %w", s.rec.ID, err)
	}
	r.publish(s.rec.ID, s.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	return r.markSandbox(s, &s.rec.Released)
}

// markSandbox sets one of the record's flags, here and on disk.
func (r *Runtime) markSandbox(s *sandbox, flag *bool) error {
	r.mu.Lock()
	*flag = true
	r.mu.Unlock()
	return s.save()
}

// RemovePodSandbox removes the sandbox and all of its containers, running or not. An
// unknown sandbox counts as removed (CRI).
func (r *Runtime) RemovePodSandbox(ctx context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	s, err := r.sandbox(req.GetPodSandboxId())
	if errors.Is(err, ErrNotFound) {
		return &runtimeapi.RemovePodSandboxResponse{}, nil
	}
	s.op.Lock()
	defer s.op.Unlock()
	if err := r.stopSandbox(ctx, s); err != nil {
		return nil, err
	}
	for _, c := range r.containersOf(s.rec.ID) {
		if err := r.removeContainer(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := r.removePodCgroups(s); err != nil {
		return nil, err
	}
	if err := s.removeDir(); err != nil {
		return nil, fmt.Errorf("remove sandbox %s: %w", s.rec.ID, err)
	}
	r.mu.Lock()
	delete(r.sandboxes, s.rec.ID)
	r.mu.Unlock()
	r.publish(s.rec.ID, s.rec.ID, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// removePodCgroups removes the pod's cgroup, unless it is the caller's own, and the one of its shims.
func (r *Runtime) removePodCgroups(s *sandbox) error {
	err := r.removeCgroup(r.shimCgroup(s.rec.ID))
	if s.config.GetLinux().GetCgroupParent() != "" {
		return err
	}
	return errors.Join(err, r.removeCgroup(r.cgroupParent(s)))
}

// removeDir deletes the record first, so that a crash in between leaves debris and not
// half a sandbox.
func (s *sandbox) removeDir() error {
	if err := os.Remove(filepath.Join(s.dir, sandboxFile)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.RemoveAll(s.dir)
}
