package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/internal/testimage"
	"kontiki/nodeagent/runtime"
)

// host is one runtime with everything that its tests need, in a temporary directory, a
// cgroup and (for the bridge) a network namespace of its own.
type host struct {
	t      *testing.T
	cfg    runtime.Config
	r      *runtime.Runtime
	client runtimeapi.RuntimeServiceClient
	images runtimeapi.ImageServiceClient
}

const helloImage = testimage.HelloName

// built is where programs are, for TestMain to clean up.
var built struct{ dir string }

// programs are built once for all tests: the shim and the image, from this repository.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "kontiki-runtime-test-"); err != nil {
		return "", err
	}
	built.dir = dir
	for name, pkg := range map[string]string{"kontiki-shim": "kontiki/cmd/kontiki-shim", "hello": "kontiki/cmd/hello"} {
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, name), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %s: %w: %s", pkg, err, out)
		}
	}
	program, err := os.ReadFile(filepath.Join(dir, "hello"))
	if err != nil {
		return "", err
	}
	return dir, testimage.WriteHello(filepath.Join(dir, "hello.tar"), program)
})

// TestMain runs the tests in a network namespace of their own, where that is allowed: a
// bridge and its addresses would meet those of other tests otherwise.
func TestMain(m *testing.M) {
	if os.Geteuid() == 0 && os.Getenv(inNamespace) == "" {
		if code, ok := runIsolated(); ok {
			os.Exit(code)
		}
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// inNamespace is set in the environment of the process that runs the tests.
const inNamespace = "KONTIKI_TEST_NAMESPACE"

// runIsolated runs this program again in a new network namespace. It is false when there
// can be none.
func runIsolated() (code int, ok bool) {
	goruntime.LockOSThread() // the child dies with this thread: see Pdeathsig in prctl(2)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	if cmd.Start() != nil {
		return 0, false
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), true
}

// loopbackUp lets the streaming server be reached in a fresh namespace.
func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// binDir is where `make build` puts runc and the plugins; KONTIKI_BIN names another place.
func binDir() string {
	if dir := os.Getenv("KONTIKI_BIN"); dir != "" {
		return dir
	}
	dir, _ := filepath.Abs("../../bin")
	return dir
}

// needContainers skips where containers cannot run, naming what is missing.
func needContainers(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, program := range []string{"runc", "cni/bridge", "cni/host-local"} {
		if _, err := os.Stat(filepath.Join(binDir(), program)); err != nil {
			t.Skipf("needs %s (make build)", filepath.Join(binDir(), program))
		}
	}
	probe := exec.Command("true")
	probe.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID}
	if err := probe.Run(); err != nil {
		t.Skipf("needs new namespaces: %v", err)
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory/cgroup.procs"); err == nil {
		return
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		t.Skip("needs cgroups")
	}
}

// newHost starts a runtime and, at the end of the test, removes all of its pods and checks
// that nothing of it is left.
func newHost(t *testing.T) *host {
	needContainers(t)
	if os.Getenv(inNamespace) != "" {
		require.NoError(t, loopbackUp())
	}
	dir, err := programs()
	require.NoError(t, err)
	root := t.TempDir()
	name := fmt.Sprintf("%d%d", os.Getpid()%10000, time.Now().UnixNano()%1000)
	h := &host{t: t, cfg: runtime.Config{
		Root: filepath.Join(root, "root"), StateDir: filepath.Join(root, "state"),
		RuncPath: filepath.Join(binDir(), "runc"), ShimPath: filepath.Join(dir, "kontiki-shim"),
		CgroupRoot: "/kontiki-test-" + name, CNIBinDirs: []string{filepath.Join(binDir(), "cni")},
		Bridge: "kt" + name, PodCIDR: "10.199.7.0/24",
		Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}}
	t.Cleanup(func() { h.cleanUp() })
	h.start()
	_, err = h.r.Images().Import(t.Context(), filepath.Join(dir, "hello.tar"))
	require.NoError(t, err)
	return h
}

// testWriter logs into the test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func (h *host) start() {
	var err error
	h.r, err = runtime.New(h.cfg)
	require.NoError(h.t, err)
	h.client = runtimeapi.NewRuntimeServiceClient(h.r.Conn())
	h.images = runtimeapi.NewImageServiceClient(h.r.Conn())
}

// restart is what a kill of the agent and a new start come to for the runtime: nothing of it
// runs on but shims and containers.
func (h *host) restart() {
	require.NoError(h.t, h.r.Close())
	h.start()
}

func (h *host) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods, err := h.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	require.NoError(h.t, err)
	for _, p := range pods.Items {
		_, err := h.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.Id})
		require.NoError(h.t, err)
	}
	require.NoError(h.t, h.r.Close())
	_ = exec.Command("ip", "link", "del", h.cfg.Bridge).Run() // absent when no pod ran
	h.requireNothingLeft()
}

// requireNothingLeft checks mounts, processes, cgroups and address leases.
func (h *host) requireNothingLeft() {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(h.t, err)
	for line := range strings.Lines(string(mounts)) {
		require.NotContains(h.t, line, h.cfg.StateDir, "mount left")
	}
	shims, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, p := range shims {
		cwd, _ := os.Readlink(p)
		require.False(h.t, strings.HasPrefix(cwd, h.cfg.StateDir), "process left: %s in %s", p, cwd)
	}
	leases, _ := filepath.Glob(filepath.Join(h.cfg.StateDir, "cni/leases/kontiki/10.*"))
	require.Empty(h.t, leases, "addresses left")
	dirs, _ := filepath.Glob("/sys/fs/cgroup/*" + h.cfg.CgroupRoot)
	more, _ := filepath.Glob("/sys/fs/cgroup" + h.cfg.CgroupRoot)
	for _, d := range append(dirs, more...) {
		require.NoError(h.t, os.Remove(d), "cgroup left")
	}
}

// sandboxConfig is an ordinary pod's.
func (h *host) sandboxConfig(name string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Hostname: name, LogDirectory: filepath.Join(h.cfg.StateDir, "logs", name),
		DnsConfig: &runtimeapi.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"default.svc.cluster.local"}, Options: []string{"ndots:5"}},
		Labels:    map[string]string{"app": name},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER},
		}},
	}
}

// containerConfig runs hello with args.
func containerConfig(name string, args ...string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: helloImage},
		Args:     args, LogPath: name + ".log",
		Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER},
		}},
	}
}

// pod is a sandbox and the configuration it was made from.
type pod struct {
	h      *host
	id     string
	config *runtimeapi.PodSandboxConfig
}

func (h *host) runPod(config *runtimeapi.PodSandboxConfig) pod {
	resp, err := h.client.RunPodSandbox(h.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	require.NoError(h.t, err)
	return pod{h, resp.PodSandboxId, config}
}

func (p pod) create(config *runtimeapi.ContainerConfig) string {
	resp, err := p.h.client.CreateContainer(p.h.t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: config, SandboxConfig: p.config})
	require.NoError(p.h.t, err)
	return resp.ContainerId
}

func (p pod) start(config *runtimeapi.ContainerConfig) string {
	id := p.create(config)
	_, err := p.h.client.StartContainer(p.h.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
	require.NoError(p.h.t, err)
	return id
}

func (h *host) status(id string) *runtimeapi.ContainerStatus {
	resp, err := h.client.ContainerStatus(h.t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	require.NoError(h.t, err)
	return resp.Status
}

// waitExit waits until a container has ended.
func (h *host) waitExit(id string) *runtimeapi.ContainerStatus {
	var st *runtimeapi.ContainerStatus
	require.Eventually(h.t, func() bool {
		st = h.status(id)
		return st.State == runtimeapi.ContainerState_CONTAINER_EXITED
	}, 20*time.Second, 5*time.Millisecond)
	return st
}

// log is the text of a container's log: stream and tag stripped, pieces joined.
func (h *host) log(id string) string {
	b, err := os.ReadFile(h.status(id).LogPath)
	require.NoError(h.t, err)
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		require.Len(h.t, fields, 4, "log line %q", line)
		_, err := time.Parse(time.RFC3339Nano, fields[0])
		require.NoError(h.t, err)
		out.WriteString(fields[3])
		if fields[2] == "F" {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// exec runs hello with args in a container.
func (h *host) exec(id string, args ...string) *runtimeapi.ExecSyncResponse {
	resp, err := h.client.ExecSync(h.t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: append([]string{"/hello"}, args...), Timeout: 20})
	require.NoError(h.t, err)
	return resp
}
