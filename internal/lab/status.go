package lab

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kontiki/internal/control"
)

// statusPatience is how long a machine may take to say how it is.
const statusPatience = 2 * time.Second

// Status is how a machine is.
type Status struct {
	Host    *Host
	State   string // running, paused, or gone
	Store   StoreStatus
	Trouble string // why the store does not say
	Node    string // Ready, NotReady, or what is known of it
}

// StoreStatus is what a member of the store says of itself, the part of raftstore.Status that is shown.
type StoreStatus struct {
	Role        string `json:"role"`
	Term        uint64 `json:"term"`
	CommitIndex uint64 `json:"commitIndex"`
	Store       struct {
		Revision int64  `json:"revision"`
		Applied  uint64 `json:"applied"`
	} `json:"store"`
}

// Status asks all machines at once.
func (l *Lab) Status(ctx context.Context) []Status {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	all := make([]Status, len(l.Hosts))
	nodes := make(chan map[string]string, 1)
	go func() { nodes <- l.nodes(ctx) }()
	var asked sync.WaitGroup
	for i, h := range l.Hosts {
		asked.Go(func() { all[i] = h.status(ctx) })
	}
	asked.Wait()
	ready := <-nodes
	for i := range all {
		all[i].Node = ready[all[i].Host.Name]
	}
	return all
}

func (h *Host) status(ctx context.Context) Status {
	s := Status{Host: h, State: "running"}
	switch h.state() {
	case "":
		s.State = "gone"
		return s
	case "T":
		s.State = "paused"
		return s
	}
	if !h.Server {
		return s
	}
	raw, err := control.NewClient(filepath.Join(h.dataDir(), "control.sock")).StoreStatus(ctx)
	if err == nil {
		err = json.Unmarshal(raw, &s.Store)
	}
	if err != nil {
		s.Trouble = err.Error()
	}
	return s
}

// nodes says which nodes are Ready, as the first server that answers has it.
func (l *Lab) nodes(ctx context.Context) map[string]string {
	ready := map[string]string{}
	for _, h := range l.Hosts {
		if !h.Server || !h.running() {
			continue
		}
		out, err := exec.CommandContext(ctx, l.Program, "kubectl", "--kubeconfig", l.Kubeconfig(),
			"--server", h.url(), "--request-timeout=1s", "get", "nodes", "--no-headers").Output()
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(out)) {
			if fields := strings.Fields(line); len(fields) > 1 {
				ready[fields[0]] = fields[1]
			}
		}
		return ready
	}
	return ready
}
