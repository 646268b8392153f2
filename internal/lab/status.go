package lab

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/apiclient"
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
	s := Status{Host: h, State: stateRunning}
	switch h.state() {
	case "", "Z":
		s.State = "gone"
		return s
	case "T":
		s.State = "paused"
		return s
	}
	if !h.Server {
		return s
	}
	raw, err := control.NewClient(filepath.Join(h.DataDir(), "control.sock")).StoreStatus(ctx)
	if err == nil {
		err = json.Unmarshal(raw, &s.Store)
	}
	if err != nil {
		s.Trouble = err.Error()
	}
	return s
}

// What machines are, and what members of the store are that take part.
const (
	stateRunning = "running"
	roleLeader   = "Leader"
	roleFollower = "Follower"
)

// nodeReady is what a node is that works.
const nodeReady = "Ready"

// nodes says which nodes are Ready, as the first server that answers has it.
func (l *Lab) nodes(ctx context.Context) map[string]string {
	for _, h := range l.Hosts {
		if !h.Server || !h.running() {
			continue
		}
		client, err := l.client(h.Name)
		if err != nil {
			continue
		}
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		ready := map[string]string{}
		for _, node := range list.Items {
			ready[node.Name] = nodeState(&node)
		}
		return ready
	}
	return nil
}

// nodeState says what kubectl does in its column STATUS.
func nodeState(node *corev1.Node) string {
	state := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			state = nodeReady
		} else if c.Type == corev1.NodeReady {
			state = "NotReady"
		}
	}
	if node.Spec.Unschedulable {
		state += ",SchedulingDisabled"
	}
	return state
}

// client calls a machine's API server; one that does not answer is given up soon.
func (l *Lab) client(machine string) (kubernetes.Interface, error) {
	config, err := l.Config(machine)
	if err != nil {
		return nil, err
	}
	config.Timeout = time.Second
	return kubernetes.NewForConfig(apiclient.Config(config, "lab/kontiki"))
}

// Roles are the names of the leader and of the other servers that run. Of two that say they lead, the one of the newer
// term does: the other has not noticed yet. The error is ErrNoLeader if nobody does.
func (l *Lab) Roles(ctx context.Context) (leader string, followers []string, err error) {
	var newest uint64
	for _, s := range l.Status(ctx) {
		switch {
		case s.Store.Role == roleLeader && s.Store.Term > newest:
			if leader != "" {
				followers = append(followers, leader)
			}
			leader, newest = s.Host.Name, s.Store.Term
		case s.Host.Server && s.State == stateRunning:
			followers = append(followers, s.Host.Name)
		}
	}
	if leader == "" {
		return "", nil, ErrNoLeader
	}
	return leader, followers, nil
}
