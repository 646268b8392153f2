package nodeagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// checkpoints keep the last known pods of this node on disk, a JSON file each, so that an agent that starts
// while no API server can be reached still restarts their containers. As soon as the API has been
// listed it alone counts.
type checkpoints struct {
	dir string
	log *slog.Logger
}

func newCheckpoints(dir string, log *slog.Logger) (*checkpoints, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	return &checkpoints{dir, log}, nil
}

func (c *checkpoints) path(uid types.UID) string { return filepath.Join(c.dir, string(uid)+".json") }

// save keeps a pod. A failure is logged: the pod runs all the same.
func (c *checkpoints) save(pod *corev1.Pod) {
	data, err := json.Marshal(pod)
	if err == nil {
		tmp := c.path(pod.UID) + ".tmp"
		if err = os.WriteFile(tmp, data, 0o600); err == nil {
			err = os.Rename(tmp, c.path(pod.UID))
		}
	}
	if err != nil {
		c.log.Warn("pod could not be checkpointed", "podUID", pod.UID, "err", err)
	}
}

func (c *checkpoints) remove(uid types.UID) {
	if err := os.Remove(c.path(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("checkpoint could not be removed", "podUID", uid, "err", err)
	}
}

// load returns all checkpoints. Unreadable ones are skipped: the API has the pods.
func (c *checkpoints) load() []*corev1.Pod {
	files, _ := filepath.Glob(filepath.Join(c.dir, "*.json")) // the pattern is well formed
	var pods []*corev1.Pod
	for _, f := range files {
		pod := &corev1.Pod{}
		data, err := os.ReadFile(f)
		if err == nil {
			err = json.Unmarshal(data, pod)
		}
		if err != nil || pod.UID == "" {
			c.log.Warn("checkpoint could not be read", "file", f, "err", err)
			continue
		}
		pod.ResourceVersion = "" // older than whatever the API says
		pods = append(pods, pod)
	}
	return pods
}
