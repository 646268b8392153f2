package nodeagent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
	"kontiki/internal/testimage"
	"kontiki/nodeagent"
	"kontiki/nodeagent/runtime"
)

// binDir is where `make build` puts runc and the CNI plugins; KONTIKI_BIN names another place.
func binDir() string {
	if dir := os.Getenv("KONTIKI_BIN"); dir != "" {
		return dir
	}
	dir, _ := filepath.Abs("../bin")
	return dir
}

func needContainers(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to run containers")
	}
	for _, program := range []string{"runc", "cni/bridge", "cni/host-local", "cni/loopback"} {
		if _, err := os.Stat(filepath.Join(binDir(), program)); err != nil {
			t.Skipf("needs %s (make build)", filepath.Join(binDir(), program))
		}
	}
	probe := exec.Command("true")
	probe.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID}
	if err := probe.Run(); err != nil {
		t.Skipf("needs new namespaces: %v", err)
	}
}

// build compiles one of this repository's programs.
func build(t *testing.T, dir, name string) string {
	t.Helper()
	out := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "kontiki/cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return out
}

// startRealNode starts an agent on the real runtime, in a cgroup of the test's own. At the end
// all pods are deleted, so that nothing is left on the machine.
func startRealNode(t *testing.T) *node {
	n := &node{t: t, cluster: testcluster.Start(t), dir: t.TempDir()}
	n.client = n.cluster.Admin()
	programs := t.TempDir()
	hello, err := os.ReadFile(build(t, programs, "hello"))
	require.NoError(t, err)
	require.NoError(t, testimage.WriteHello(filepath.Join(programs, "hello.tar"), hello))
	name := fmt.Sprint(os.Getpid() % 100000)
	r, err := runtime.New(runtime.Config{
		Root: n.dir, StateDir: filepath.Join(n.dir, "runtime"), RuncPath: filepath.Join(binDir(), "runc"),
		ShimPath: build(t, programs, "kontiki-shim"), CgroupRoot: "/kontiki-agent-test-" + name,
		CNIBinDirs: []string{filepath.Join(binDir(), "cni")}, Log: n.cluster.Log,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		removeCgroups("kontiki-agent-test-" + name)
	})
	_, err = r.Images().Import(t.Context(), filepath.Join(programs, "hello.tar"))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, _, err = n.cluster.PKI.Node("n1", []net.IP{net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	agent, err := nodeagent.New(nodeagent.Config{
		NodeName: "n1", NodeIPs: []string{"127.0.0.1"}, DataDir: n.dir, REST: n.cluster.NodeREST("n1"), Runtime: r.Conn(),
		ServingTLS: n.cluster.PKI.AgentServing("n1"), Listen: listener, Log: n.cluster.Log, LogMaxBytes: 64 << 10,
	})
	require.NoError(t, err)
	n.cluster.Go("agent", agent.Run)
	t.Cleanup(func() {
		pods := n.client.CoreV1().Pods("default")
		one := int64(1)
		_ = pods.DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &one}, metav1.ListOptions{})
		require.Eventually(t, func() bool {
			list, err := pods.List(context.Background(), metav1.ListOptions{})
			if err != nil || len(list.Items) > 0 {
				return false
			}
			left, _ := filepath.Glob(filepath.Join(n.dir, "runtime", "sandboxes", "*"))
			return len(left) == 0
		}, patience, 50*time.Millisecond, "pods must be gone from the machine")
	})
	return n
}

func removeCgroups(name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			pods, _ := filepath.Glob(filepath.Join(dir, "*"))
			for _, d := range append(pods, dir) {
				_ = os.Remove(d) // cgroups' files are no obstacle, and are not removed themselves
			}
		}
	}
}

// hello makes a container of the test image with these arguments.
func hello(name string, args ...string) corev1.Container {
	return corev1.Container{Name: name, Image: testimage.HelloName, ImagePullPolicy: corev1.PullIfNotPresent, Args: args}
}

// run executes a command in the pod's main container over WebSocket, as kubectl does, and returns its output and exit code.
func (n *node) run(pod string, stdin io.Reader, command ...string) (string, int) {
	n.t.Helper()
	req := n.client.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").Name(pod).SubResource("exec").
		Param("container", "main").Param("stdout", "true").Param("stderr", "true").Param("stdin", strconv.FormatBool(stdin != nil))
	for _, word := range command {
		req.Param("command", word)
	}
	e, err := remotecommand.NewWebSocketExecutor(n.adminREST(), http.MethodGet, req.URL().String())
	require.NoError(n.t, err)
	var out, errOut bytes.Buffer
	err = e.StreamWithContext(n.t.Context(), remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Stderr: &errOut})
	var code utilexec.CodeExitError
	if errors.As(err, &code) {
		return out.String() + errOut.String(), code.Code
	}
	require.NoError(n.t, err)
	return out.String(), 0
}

func (n *node) adminREST() *rest.Config { return n.cluster.REST(pki.Admin) }

func (n *node) logs(pod string, o corev1.PodLogOptions) string {
	n.t.Helper()
	stream, err := n.client.CoreV1().Pods("default").GetLogs(pod, &o).Stream(n.t.Context())
	require.NoError(n.t, err)
	defer stream.Close()
	data, err := io.ReadAll(stream)
	require.NoError(n.t, err)
	return string(data)
}

// inNetns is set in the process that has a network namespace of its own.
const inNetns = "KONTIKI_TEST_IN_NETNS"

// isolated runs the calling test again in a new network namespace, so that its bridge and addresses meet nobody else's, and
// reports whether this is that second run.
func isolated(t *testing.T) bool {
	if os.Getenv(inNetns) != "" {
		lo, err := netlink.LinkByName("lo")
		require.NoError(t, err)
		require.NoError(t, netlink.LinkSetUp(lo))
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inNetns+"=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	return false
}

// TestRealPods runs one node with several pods: a start of it costs more than what the parts look at.
func TestRealPods(t *testing.T) {
	needContainers(t)
	if !isolated(t) {
		return
	}
	n := startRealNode(t)
	for _, part := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"streams", n.testStreams},
		{"volumes and environment", n.testVolumes},
		{"logs", n.testLogs},
		{"probes and restarts", n.testProbes},
		{"termination", n.testTermination},
	} {
		t.Run(part.name, func(t *testing.T) {
			n.t = t
			part.test(t)
		})
		n.t = t
	}
}

func (n *node) testStreams(t *testing.T) {
	n.pod("serve", func(pod *corev1.Pod) { pod.Spec.Containers[0] = hello("main", "serve", ":8080") })
	n.await("serve", "ready", isReady)
	out, code := n.run("serve", strings.NewReader("foo\n"), "/hello", "upper")
	require.Equal(t, "FOO\n", out)
	require.Zero(t, code)
	_, code = n.run("serve", nil, "/hello", "exit", "3")
	require.Equal(t, 3, code)

	req := n.client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("serve").SubResource("portforward")
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(req.URL(), n.adminREST())
	require.NoError(t, err)
	stop, ready, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	fw, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{":8080"}, stop, ready, io.Discard, io.Discard)
	require.NoError(t, err)
	go func() { done <- fw.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		require.FailNow(t, "not forwarded", "%v", err)
	}
	ports, err := fw.GetPorts()
	require.NoError(t, err)
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	close(stop)
	require.NoError(t, <-done)
}

func (n *node) testVolumes(t *testing.T) {
	_, err := n.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm"},
		Data: map[string]string{"a": "one"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	uid, group := int64(1000), int64(2000)
	n.pod("volumes", func(pod *corev1.Pod) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &uid, FSGroup: &group}
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "cm", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}},
		}
		init := hello("init", "write", "/work/from-init", "done")
		init.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/work"}}
		pod.Spec.InitContainers = []corev1.Container{init}
		main := hello("main", "serve", ":8080")
		main.Env = []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
		main.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/work"}, {Name: "cm", MountPath: "/cm"}, {Name: "cm", MountPath: "/one", SubPath: "a"}}
		main.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/hello", "write", "/work/post", "started"}}}}
		pod.Spec.Containers[0] = main
	})
	pod := n.await("volumes", "ready", isReady)
	out, _ := n.run("volumes", nil, "/hello", "cat", "/work/from-init", "/work/post", "/cm/a", "/one")
	require.Equal(t, "donestartedoneone", out)
	out, _ = n.run("volumes", nil, "/hello", "env")
	require.Contains(t, out, "IP="+pod.Status.PodIP+"\n")
	out, _ = n.run("volumes", nil, "/hello", "id")
	require.Contains(t, out, "uid=1000")
	require.Contains(t, out, "2000")
	out, _ = n.run("volumes", nil, "/hello", "cat", "/etc/hosts")
	require.Contains(t, out, pod.Status.PodIP+"\tvolumes\n")
}

func (n *node) testLogs(t *testing.T) {
	n.pod("lines", func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0] = hello("main", "lines", "5000", "40")
	})
	n.await("lines", "Succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	all := n.logs("lines", corev1.PodLogOptions{})
	require.Equal(t, 5000, strings.Count(all, "\n"))
	ten := int64(10)
	lines := strings.SplitAfter(all, "\n")
	require.Equal(t, strings.Join(lines[4990:], ""), n.logs("lines", corev1.PodLogOptions{TailLines: &ten}))

	n.pod("partial", func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0] = hello("main", "partial", "no newline")
	})
	n.await("partial", "Succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	require.Equal(t, "no newline", n.logs("partial", corev1.PodLogOptions{Follow: true}))

	n.pod("twice", func(pod *corev1.Pod) { pod.Spec.Containers[0] = hello("main", "exit", "7") })
	n.await("twice", "in CrashLoopBackOff", waiting("CrashLoopBackOff"))
	n.logs("twice", corev1.PodLogOptions{Previous: true})
}

func (n *node) testProbes(t *testing.T) {
	n.pod("probes", func(pod *corev1.Pod) {
		main := hello("main", "serve", ":8080")
		get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080), Path: "/"}}
		main.StartupProbe = &corev1.Probe{ProbeHandler: get, PeriodSeconds: 1, FailureThreshold: 20}
		main.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/hello", "cat", "/tmp/ready"}}}, PeriodSeconds: 1}
		main.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}, PeriodSeconds: 1}
		main.VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
		pod.Spec.Containers[0] = main
	})
	n.await("probes", "started up", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Started != nil && *p.Status.ContainerStatuses[0].Started
	})
	n.awaitEvent("probes", "Unhealthy: Readiness probe failed")
	n.run("probes", nil, "/hello", "write", "/tmp/ready", "yes")
	pod := n.await("probes", "ready", isReady)
	require.Zero(t, pod.Status.ContainerStatuses[0].RestartCount)

	n.pod("sick", func(pod *corev1.Pod) {
		pod.Spec.Containers[0] = hello("main", "serve", ":8080")
		pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
			ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9)}}}
	})
	n.await("sick", "restarted", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0
	})
	n.awaitEvent("sick", "Killing: Container main failed liveness probe, will be restarted")

	n.pod("oom", func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0] = hello("main", "alloc", "100")
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("20Mi")}
	})
	pod = n.await("oom", "Failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	require.Equal(t, "OOMKilled", pod.Status.ContainerStatuses[0].State.Terminated.Reason)
}

func (n *node) testTermination(t *testing.T) {
	n.pod("stubborn", func(pod *corev1.Pod) { // ND-04, with a grace of 2 s
		pod.Spec.Containers[0] = hello("main", "trap", "ignore")
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/hello", "sleep", "9999s"}}}}
	})
	long := int64(300)
	n.pod("polite", func(pod *corev1.Pod) { // ND-05
		pod.Spec.TerminationGracePeriodSeconds = &long
		pod.Spec.Containers[0] = hello("main", "trap", "100ms")
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	})
	n.await("stubborn", "ready", isReady)
	n.await("polite", "ready", isReady)
	for _, name := range []string{"stubborn", "polite"} {
		require.NoError(t, n.client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	n.awaitGone("polite")
	n.awaitGone("stubborn")
	n.awaitEvent("stubborn", "FailedPreStopHook: PreStopHook did not complete within the grace period")
}
