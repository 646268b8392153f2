package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/internal/apiclient"
	"kontiki/internal/bench/apiload"
	"kontiki/internal/bench/load"
	"kontiki/internal/freeport"
)

// patience is how long anything may take before the bench gives up.
const patience = time.Minute

// node is a `kontiki dev` under measurement.
type node struct {
	bin, dir    string
	https, port string // of the API server and of the agent
	flags       []string

	cmd   *exec.Cmd
	log   bytes.Buffer
	ended chan struct{}
}

func benchNode(ctx context.Context, bin, dir string, api apiload.Config) error {
	n := &node{bin: bin, dir: filepath.Join(dir, "node")}
	var err error
	if n.https, n.port, err = twoPorts(); err != nil {
		return err
	}
	for _, state := range []string{"new", "existing"} {
		began := time.Now()
		if err := n.start(ctx); err != nil {
			return err
		}
		report("start to /readyz, "+state+" data directory", "%s", time.Since(began).Round(time.Millisecond))
		if state == "existing" {
			break
		}
		if err := n.stop(); err != nil {
			return err
		}
	}
	return errors.Join(n.measure(ctx, api), n.stop())
}

func (n *node) measure(ctx context.Context, api apiload.Config) error {
	if err := load.Pause(ctx, 5*time.Second); err != nil {
		return err
	}
	if err := n.reportMemory("idle memory (everything in one process)"); err != nil {
		return err
	}
	if err := n.reportIdleCPU(ctx); err != nil {
		return err
	}
	if err := n.benchApply(ctx); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	config, err := n.config()
	if err != nil {
		return err
	}
	if len(api.Only) == 0 {
		api.Only = apiload.BuiltInNames()
	}
	if err := benchAPI(ctx, config, api); err != nil {
		return fmt.Errorf("API: %w", err)
	}
	return n.reportMemory("memory after this load")
}

// start returns when /readyz says ok.
func (n *node) start(ctx context.Context) error {
	n.cmd = exec.Command(filepath.Join(n.bin, "kontiki"), append([]string{"dev", "--data-dir", n.dir, "--https-port", n.https,
		"--agent-port", n.port, "--client-port", "0", "--cgroup-root", "kontiki-bench", "--log-level", "warn"}, n.flags...)...)
	n.log.Reset()
	n.cmd.Stderr = &n.log
	if err := n.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	n.ended = ended
	go func() { _ = n.cmd.Wait(); close(ended) }()
	return n.until(ctx, 2*time.Millisecond, n.ready)
}

func (n *node) ready() bool {
	config, err := n.config()
	if err != nil {
		return false
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return false
	}
	response, err := (&http.Client{Transport: transport}).Get(config.Host + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK
}

// until polls until done, the node's end, or the end of patience.
func (n *node) until(ctx context.Context, every time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !done() {
		select {
		case <-n.ended:
			return fmt.Errorf("kontiki dev ended: %s", n.log.String())
		default:
		}
		if err := load.Pause(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) stop() error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-n.ended
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("kontiki dev ended with %d: %s", code, n.log.String())
	}
	return nil
}

func (n *node) config() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", filepath.Join(n.dir, "admin.kubeconfig"))
}

func (n *node) client() (kubernetes.Interface, error) {
	config, err := n.config()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(apiclient.Config(config, "bench/kontiki"))
}

// reportMemory prints the resident set, and how much of it is not the program's own pages.
func (n *node) reportMemory(what string) error {
	kilobytes, err := n.memory()
	if err == nil {
		report(what, "%s", inMemory(kilobytes))
	}
	return err
}

func (n *node) memory() (map[string]int, error) { return memoryOf(n.cmd.Process.Pid) }

func inMemory(kilobytes map[string]int) string {
	return fmt.Sprintf("%d MiB resident, %d MiB of it anonymous", kilobytes["VmRSS:"]>>10, kilobytes["RssAnon:"]>>10)
}

// memoryOf is what /proc says of a process, in KiB.
func memoryOf(pid int) (map[string]int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	kilobytes := map[string]int{}
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 {
			kilobytes[fields[0]], _ = strconv.Atoi(fields[1])
		}
	}
	return kilobytes, nil
}

// idleFor is how long the use of CPU without any load is measured.
const idleFor = 10 * time.Second

// reportIdleCPU prints what share of a core the process uses while nobody asks it for anything.
func (n *node) reportIdleCPU(ctx context.Context) error {
	before, err := n.cpuTicks()
	if err != nil {
		return err
	}
	if err := load.Pause(ctx, idleFor); err != nil {
		return err
	}
	after, err := n.cpuTicks()
	if err != nil {
		return err
	}
	const ticksPerSecond = 100 // USER_HZ, on every Linux
	report("CPU when idle", "%.1f %% of a core", 100*float64(after-before)/ticksPerSecond/idleFor.Seconds())
	return nil
}

func (n *node) cpuTicks() (int, error) { return ticksOf(n.cmd.Process.Pid) }

// ticksOf is the time that the process has used: fields 14 and 15 of proc(5)'s stat, counted behind the name.
func ticksOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return user + system, errors.Join(err1, err2)
}

// benchApply measures from the start of `kubectl apply` to three Running pods.
func (n *node) benchApply(ctx context.Context) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	if err := n.until(ctx, 20*time.Millisecond, func() bool { return schedulable(ctx, client) }); err != nil {
		return fmt.Errorf("no node is ready: %w", err)
	}
	began := time.Now()
	apply := exec.CommandContext(ctx, filepath.Join(n.bin, "kontiki"), "kubectl",
		"--kubeconfig", filepath.Join(n.dir, "admin.kubeconfig"), "apply", "-f", "examples/hello.yaml")
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := n.until(ctx, 5*time.Millisecond, func() bool { return runningPods(ctx, client) == 3 }); err != nil {
		return err
	}
	report("kubectl apply to 3 Running pods", "%s", time.Since(began).Round(time.Millisecond))
	return nil
}

func twoPorts() (a, b string, err error) {
	var ports [2]string
	for i := range ports {
		port, err := freeport.Take()
		if err != nil {
			return "", "", err
		}
		ports[i] = strconv.Itoa(port)
	}
	return ports[0], ports[1], nil
}
