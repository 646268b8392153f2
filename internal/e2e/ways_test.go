package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// The pods of TestTraffic: one on each machine that echoes TCP and UDP and answers HTTP, and a second one on s1.
var trafficPods = []string{"echo-s1", "echo-s2", "echo-s3", "twin-s1"}

// Where the Service front is found from outside.
const webNodePort, tcpPort, udpPort = 30080, 30090, 30091

// balancerAddresses are some that a load balancer would have given (RFC 5737, RFC 3849).
var balancerAddresses = []string{"203.0.113.10", "2001:db8::10"}

// trafficManifest has the pods, a Service over all of them, one for each alone, and one that gives them names; all Services
// of both IP families.
var trafficManifest = template.Must(template.New("").Parse(`
{{define "ports"}}ports: [{name: web, port: 80, targetPort: 8080}, {name: tcp, port: 9000}, {name: udp, port: 9001, protocol: UDP}]{{end}}
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  selector: {app: echo}
  ports:
  - {name: web, port: 80, targetPort: 8080, nodePort: 30080}
  - {name: tcp, port: 9000, nodePort: 30090}
  - {name: udp, port: 9001, protocol: UDP, nodePort: 30091}
---
apiVersion: v1
kind: Service
metadata: {name: names}
spec:
  clusterIP: None
  ipFamilyPolicy: RequireDualStack
  selector: {app: echo}
  {{template "ports"}}
{{range .}}---
apiVersion: v1
kind: Service
metadata: {name: only-{{.}}}
spec:
  ipFamilyPolicy: RequireDualStack
  selector: {pod: {{.}}}
  {{template "ports"}}
---
apiVersion: v1
kind: Pod
metadata: {name: {{.}}, labels: {app: echo, pod: {{.}}}}
spec:
  nodeName: {{slice . 5}}
  hostname: {{.}}
  subdomain: names
  terminationGracePeriodSeconds: 1
  containers:
  - {name: web, image: "kontiki.local/hello:latest", imagePullPolicy: Never, args: [serve, ":8080"], readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}}
  - {name: tcp, image: "kontiki.local/hello:latest", imagePullPolicy: Never, args: [tcp-echo, ":9000"], readinessProbe: {tcpSocket: {port: 9000}, periodSeconds: 1}}
  - {name: udp, image: "kontiki.local/hello:latest", imagePullPolicy: Never, args: [udp-echo, ":9001"]}
{{end}}`))

// traffic is a lab whose pods, machines and surroundings send packets to each other.
type traffic struct {
	*labCLI
	api   string              // the machine whose API server is asked
	pods  map[string][]string // the addresses of each pod, one of each IP family
	front []string            // the Service's cluster IPs
}

// labAddress is where a machine of a lab is, labAddresses where one of a dual-stack lab is.
func labAddress(machine string) string { return "10.89.0.1" + machine[1:] }

func labAddresses(machine string) []string {
	return []string{labAddress(machine), "fd00:89::1" + machine[1:]}
}

// kubectlArgv is a kubectl that asks the API server of l.api.
func (l *traffic) kubectlArgv(args ...string) []string {
	return append([]string{filepath.Join(binDir, "kontiki"), "kubectl", "--kubeconfig", filepath.Join(l.dir, "kubeconfig"),
		"--server", "https://" + labAddress(l.api) + ":6443"}, args...)
}

// apply applies a manifest.
func (l *traffic) apply(manifest string) error {
	argv := l.kubectlArgv("apply", "-f", "-")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// file writes a manifest into the test's directory, and returns its path.
func (l *traffic) file(name, manifest string) string {
	l.t.Helper()
	path := filepath.Join(l.t.TempDir(), name+".yaml")
	require.NoError(l.t, os.WriteFile(path, []byte(manifest), 0o600))
	return path
}

// must is what kubectl says once it succeeds: there are moments without a leader.
func (l *traffic) must(args ...string) (out string) {
	l.t.Helper()
	l.eventually(strings.Join(args, " "), func() (err error) {
		if out, err = l.kubectl(l.api, args...); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	return out
}

// look takes down the addresses of the pods, which must all be Ready and have two of their own.
func (l *traffic) look() error {
	out, err := l.kubectl(l.api, "get", "pods", "-l", "app=echo", "-o", "json")
	if err != nil {
		return errors.New(out)
	}
	var list corev1.PodList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return err
	}
	addresses, seen := map[string][]string{}, map[string]bool{}
	for _, p := range list.Items {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if !ready || len(p.Status.PodIPs) != 2 {
			return fmt.Errorf("pod %s: ready %v, addresses %v", p.Name, ready, p.Status.PodIPs)
		}
		for _, at := range p.Status.PodIPs {
			if seen[at.IP] {
				return fmt.Errorf("pod %s: %s is there twice", p.Name, at.IP)
			}
			addresses[p.Name], seen[at.IP] = append(addresses[p.Name], at.IP), true
		}
	}
	l.pods = addresses
	return nil
}

// three are the ways to each of some hosts, which are names or addresses: HTTP, and an echo by TCP and by UDP.
func three(hosts []string, web, tcp, udp int) (targets []string) {
	for _, host := range hosts {
		for scheme, port := range map[string]int{"http": web, "tcp": tcp, "udp": udp} {
			targets = append(targets, scheme+"://"+net.JoinHostPort(host, strconv.Itoa(port)))
		}
	}
	return targets
}

func toPod(addresses []string) []string { return three(addresses, 8080, 9000, 9001) }

func toService(hosts ...string) []string { return three(hosts, 80, 9000, 9001) }

func toNodePorts(machine string) []string {
	return three(labAddresses(machine), webNodePort, tcpPort, udpPort)
}

// source is where packets come from, and where they have to get.
type source struct {
	name    string
	argv    []string // runs what follows there
	targets []string
}

// fromPod has a pod reach its twin or itself, the pods of other machines, Services by name and by address, itself through its
// Service (NW-03), and names.
func (l *traffic) fromPod(name string) source {
	s := source{name: "pod " + name, argv: l.kubectlArgv("exec", name, "-c", "web", "--", "/hello")}
	for _, addresses := range l.pods {
		s.targets = append(s.targets, toPod(addresses)...)
	}
	s.targets = append(s.targets, toService("front")...)
	s.targets = append(s.targets, toService(l.front...)...)
	s.targets = append(s.targets, toService("only-"+name)...)
	for _, other := range []string{"front.default.svc.cluster.local", "kubernetes.default", "echo-s2.names.default.svc.cluster.local", "twin-s1.names"} {
		s.targets = append(s.targets, "dns://"+other)
	}
	return s
}

// fromMachine has a machine itself reach pods, Services, and node ports of its own and of others.
func (l *traffic) fromMachine(name string) source {
	s := source{name: "machine " + name, argv: []string{
		filepath.Join(binDir, "kontiki"), "lab", "--dir", l.dir, "exec", name, "--", filepath.Join(binDir, "hello"),
	}}
	for _, addresses := range l.pods {
		s.targets = append(s.targets, toPod(addresses)...)
	}
	s.targets = append(s.targets, toService(l.front...)...)
	for _, machine := range []string{"s1", "s2", "s3"} {
		s.targets = append(s.targets, toNodePorts(machine)...)
	}
	return s
}

// fromOutside has this machine, which is no part of the cluster, reach node ports and the load balancer's address.
func (l *traffic) fromOutside() source {
	s := source{name: "outside", argv: []string{filepath.Join(binDir, "hello")}, targets: toService(balancerAddresses...)}
	for _, machine := range []string{"s1", "s2", "s3"} {
		s.targets = append(s.targets, toNodePorts(machine)...)
	}
	return s
}

// everywhere are all sources, with the addresses of the moment.
func (l *traffic) everywhere() []source {
	all := []source{l.fromOutside()}
	for _, machine := range []string{"s1", "s2", "s3"} {
		all = append(all, l.fromMachine(machine), l.fromPod("echo-"+machine))
	}
	return all
}

// try sends from all sources at once, and says what did not arrive.
func (l *traffic) try(sources ...source) error {
	failures := make(chan error, len(sources))
	for _, s := range sources {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			out, err := exec.CommandContext(ctx, s.argv[0], append(append(s.argv[1:], "reach"), s.targets...)...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("from %s: %w: %s", s.name, err, failedLines(string(out)))
			} else if n := strings.Count(string(out), "\n"); n < len(s.targets) {
				err = fmt.Errorf("from %s: %d of %d answers: %s", s.name, n, len(s.targets), out)
			}
			failures <- err
		}()
	}
	var all error
	for range sources {
		all = errors.Join(all, <-failures)
	}
	return all
}

// failedLines are what went wrong, without what went well.
func failedLines(out string) string {
	var failed strings.Builder
	for line := range strings.Lines(out) {
		if !strings.Contains(line, " echoed ") && !strings.Contains(line, " I am pod ") {
			failed.WriteString(line)
		}
	}
	return failed.String()
}

// eventually does f until it succeeds, for a minute.
func (l *traffic) eventually(when string, f func() error) {
	l.t.Helper()
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if last = f(); last == nil {
			return
		}
	}
	require.NoError(l.t, last, when)
}

// allArrives waits until the pods are ready and everything arrives, from everywhere.
func (l *traffic) allArrives(when string) {
	l.t.Helper()
	l.eventually(when, func() error {
		if err := l.look(); err != nil {
			return err
		}
		return l.try(l.everywhere()...)
	})
}
