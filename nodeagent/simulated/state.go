package simulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// state is the JSON of the state file.
type state struct {
	Sandboxes  map[string]*sandbox
	Containers map[string]*container
}

// save writes the state file. A failure is only logged: the state is a convenience, and the pods go
// on in memory. The caller holds r.mu.
func (r *Runtime) save() {
	if r.stateFile == "" {
		return
	}
	data, err := json.Marshal(state{r.sandboxes, r.containers})
	if err == nil {
		tmp := r.stateFile + ".tmp"
		if err = os.WriteFile(tmp, data, 0o600); err == nil {
			err = os.Rename(tmp, r.stateFile)
		}
	}
	if err != nil {
		r.log.Error("cannot keep the state of the simulated runtime", "file", r.stateFile, "err", err)
	}
}

// load reads the state file. Containers whose own exit fell into the time without a process end now.
func (r *Runtime) load() error {
	if r.stateFile == "" {
		return nil
	}
	data, err := os.ReadFile(r.stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("simulated runtime: state: %w", err)
	}
	st := state{r.sandboxes, r.containers}
	if err := json.Unmarshal(data, &st); err != nil {
		return fmt.Errorf("simulated runtime: state file %s: %w", r.stateFile, err)
	}
	for _, c := range r.containers {
		c.ended = make(chan struct{})
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			close(c.ended)
			continue
		}
		if after, ok := r.duration(c, "exit-after"); ok {
			r.exitLater(c, time.Until(time.Unix(0, c.Started).Add(after)))
		}
	}
	return nil
}
