package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"
)

// hostPortPod echoes UDP and TCP at port 9100 of its node.
func hostPortPod(name, ports string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: host-port}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: udp, image: "kontiki.local/hello:latest", imagePullPolicy: Never, args: [udp-echo, ":9001"], env: [{name: POD_NAME, value: %[1]s}], ports: [%[2]s]}
  - {name: tcp, image: "kontiki.local/hello:latest", imagePullPolicy: Never, args: [tcp-echo, ":9000"]}
`, name, ports)
}

const (
	udpHostPort = "{hostPort: 9100, containerPort: 9001, protocol: UDP}"
	tcpHostPort = "{hostPort: 9100, containerPort: 9000, protocol: TCP}"
)

// TestHostPorts_NW04 has a client that never stops sending from one port: it is heard again when the pod behind a host port was
// replaced, and when the process in it was killed. Each pod has one rule for each port, and a port is taken once.
func TestHostPorts_NW04(t *testing.T) {
	n, k := isolated(t)
	k.okInput(t, n, hostPortPod("first", udpHostPort+", "+tcpHostPort), "apply", "-f", "-")
	k.ok(t, n, "wait", "--for=condition=Ready", "pod/first", "--timeout=60s")
	client := dialUDP(t, n, "192.0.2.10:9100")
	client.heard("the first pod")
	require.Equal(t, 1, hostPortRules(t, n, "udp"))
	require.Equal(t, 1, hostPortRules(t, n, "tcp"))

	k.okInput(t, n, hostPortPod("taken", udpHostPort), "apply", "-f", "-")
	k.ok(t, n, "wait", "--for=jsonpath={.status.conditions[?(@.type=='PodScheduled')].reason}=Unschedulable", "pod/taken", "--timeout=60s")
	require.Contains(t, k.ok(t, n, "get", "pod", "taken", "-o", "jsonpath={.status.conditions[*].message}"), "free ports")

	// The one that waits takes the port over as soon as it is free, and the client's flow with it.
	client.silence(func() { k.ok(t, n, "delete", "pod", "first", "--wait=true", "--timeout=60s") })
	k.ok(t, n, "wait", "--for=condition=Ready", "pod/taken", "--timeout=60s")
	client.heard("the second pod")
	require.Equal(t, 1, hostPortRules(t, n, "udp"))
	require.Equal(t, 0, hostPortRules(t, n, "tcp"), "the first pod's is gone")

	// The same number with another protocol is another port.
	k.okInput(t, n, hostPortPod("third", tcpHostPort), "apply", "-f", "-")
	k.ok(t, n, "wait", "--for=condition=Ready", "pod/third", "--timeout=60s")
	require.Equal(t, 1, hostPortRules(t, n, "tcp"))

	client.silence(func() { killEcho(t, "taken") })
	client.heard("the pod after its process was killed")
	require.Equal(t, 1, hostPortRules(t, n, "udp"))

	k.ok(t, n, "delete", "pod", "-l", "app=host-port", "--wait=true", "--timeout=60s")
	require.Equal(t, 0, hostPortRules(t, n, "udp"))
	require.Equal(t, 0, hostPortRules(t, n, "tcp"))
}

// hostPortRules counts the rules for the test's host port.
func hostPortRules(t *testing.T, n *node, protocol string) int {
	t.Helper()
	out, err := exec.Command("nsenter", "--net", "--target", fmt.Sprint(n.cmd.Process.Pid), "nft", "list", "ruleset").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return len(regexp.MustCompile(protocol+` dport 9100 dnat`).FindAll(out, -1))
}

// talker sends ten datagrams a second from one port, until the test ends.
type talker struct {
	t       *testing.T
	answers chan string
}

// dialUDP starts one in a node's network.
func dialUDP(t *testing.T, n *node, address string) *talker {
	conns, failed := make(chan net.Conn, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		space, err := netns.GetFromPid(n.cmd.Process.Pid)
		if err == nil {
			defer space.Close()
			err = netns.Set(space)
		}
		if err != nil {
			failed <- err
			return
		}
		conn, err := net.Dial("udp", address)
		conns <- conn
		failed <- err
	}()
	require.NoError(t, <-failed)
	conn := <-conns
	talk := &talker{t: t, answers: make(chan string, 1)}
	stopped := make(chan struct{}, 2)
	go func() {
		defer func() { stopped <- struct{}{} }()
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			// Refused when nobody is there, which the socket says at the next write.
			if _, err := fmt.Fprint(conn, "datagram ", i); errors.Is(err, net.ErrClosed) {
				return
			}
			<-ticker.C
		}
	}()
	go func() {
		defer func() { stopped <- struct{}{} }()
		buffer := make([]byte, 100)
		for {
			count, err := conn.Read(buffer)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				select {
				case talk.answers <- string(buffer[:count]):
				default: // nobody waits for it
				}
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-stopped
		<-stopped
	})
	return talk
}

// heard waits for an answer that came after this call.
func (c *talker) heard(of string) {
	c.t.Helper()
	for range 2 { // one may have been waiting
		select {
		case answer := <-c.answers:
			require.Contains(c.t, answer, "datagram ")
		case <-time.After(time.Minute):
			require.Fail(c.t, "no answer of "+of)
		}
	}
}

// silence forgets the answers to what was sent before f ended.
func (c *talker) silence(f func()) {
	f()
	select {
	case <-c.answers:
	default:
	}
}

// killEcho kills the process of a pod that echoes UDP.
func killEcho(t *testing.T, pod string) {
	t.Helper()
	killed := 0
	for pid := range containerPIDs() {
		argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if strings.Contains(string(argv), "\x00udp-echo\x00") && strings.Contains(string(environment), "POD_NAME="+pod+"\x00") {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			killed++
		}
	}
	require.Equal(t, 1, killed)
}
