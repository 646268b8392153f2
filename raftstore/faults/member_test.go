package faults

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"kontiki/raftstore"
	"kontiki/raftstore/etcdapi"
)

// memberEnv has what a member process is: the test binary runs itself with it.
const memberEnv = "KONTIKI_FAULTS_MEMBER"

// memberSpec is what a member process is told.
type memberSpec struct {
	ID, Dir, Socket string
	Cgroup          string // to run in; empty for that of the test
	Peers           []raftstore.Peer
	Join            []string // addresses of the cluster that a new member joins; it has the place of Peers that is named like it
}

// runMember is a member process. It ends when it is killed, or with an error.
func runMember(text string) error {
	var spec memberSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	if spec.Cgroup != "" {
		if err := enterCgroup(spec.Cgroup); err != nil {
			return err
		}
	}
	config := raftstore.Config{
		Dir: spec.Dir, NodeID: spec.ID, Bootstrap: true, Peers: spec.Peers,
		// Snapshots are frequent, so that members which were away get some instead of the log.
		SnapshotEntries: 500, SnapshotInterval: 2 * time.Second,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	for _, p := range spec.Peers {
		if strings.HasPrefix(spec.ID, p.ID) {
			network, err := raftstore.Listen(p.Address, "", nil, nil)
			if err != nil {
				return err
			}
			config.Network = network
		}
	}
	if len(spec.Join) > 0 {
		config.Bootstrap, config.Peers, config.Join = false, nil, spec.Join
	}
	m, err := raftstore.Open(config)
	if err != nil {
		return err
	}
	_ = os.Remove(spec.Socket) // that of the process which was killed
	clients, err := net.Listen("unix", spec.Socket)
	if err != nil {
		return err
	}
	return etcdapi.New(m, etcdapi.Config{ClusterName: "faults", Log: config.Log}).Serve(clients)
}

// member is a member as the test sees it: its process, if it runs, and a client that asks it alone.
type member struct {
	host   *host
	disk   *disk // nil for that of the test
	spec   memberSpec
	log    string
	client *clientv3.Client

	mu      sync.Mutex // guards everything below
	process *exec.Cmd
	ended   chan struct{} // closed when process has ended
	killed  bool          // by the test, or about to be
}

func newMember(t *testing.T, h *host, spec memberSpec, d *disk) *member {
	m := &member{host: h, disk: d, spec: spec, log: strings.TrimSuffix(spec.Socket, ".sock") + ".log"}
	var err error
	m.client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + spec.Socket},
		Logger:    zap.NewNop(), // it tells of every call that fails
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
		})},
	})
	require.NoError(t, err)
	require.NoError(t, m.start(t))
	t.Cleanup(func() {
		m.kill()
		_ = m.client.Close() // its calls have ended with the process
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", spec.ID, m.endOfLog())
		}
	})
	return m
}

// start runs the member's process in its host.
func (m *member) start(t *testing.T) error {
	spec, err := json.Marshal(m.spec)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), memberEnv+"="+string(spec))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.host.do(cmd.Start); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ended := make(chan struct{})
	m.process, m.ended, m.killed = cmd, ended, false
	go func() {
		defer close(ended)
		err := cmd.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.killed {
			t.Errorf("member %s ended by itself: %v", m.spec.ID, err)
		}
	}()
	return nil
}

// kill ends the process with SIGKILL, whether it is stopped or not, and waits for its end.
func (m *member) kill() {
	m.mu.Lock()
	m.killed = true
	process, ended := m.process, m.ended
	m.mu.Unlock()
	if process != nil {
		_ = process.Process.Kill() // it has ended already, else
		<-ended
	}
}

func (m *member) signal(s os.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process.Process.Signal(s)
}

func (m *member) endOfLog() string {
	b, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(b), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
