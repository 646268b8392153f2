package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// labCLI calls `kontiki lab` for one lab.
type labCLI struct {
	t   *testing.T
	dir string
}

// newLab starts a lab that ends with the test.
func newLab(t *testing.T, flags ...string) *labCLI {
	needCluster(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("needs nft")
	}
	l := &labCLI{t: t, dir: filepath.Join(t.TempDir(), "lab")}
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(l.dir, "lab.json")); err == nil {
			l.ok("down")
		}
	})
	l.ok(append([]string{"up"}, flags...)...)
	return l
}

func (l *labCLI) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(binDir, "kontiki"), append([]string{"lab", "--dir", l.dir}, args...)...).CombinedOutput()
	return string(out), err
}

func (l *labCLI) ok(args ...string) string {
	l.t.Helper()
	out, err := l.run(args...)
	require.NoError(l.t, err, "kontiki lab %v: %s", args, out)
	return out
}

// kubectl calls a machine's API server or, by the name lab, any that is ready.
func (l *labCLI) kubectl(context string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(binDir, "kontiki"), append([]string{"kubectl", "--kubeconfig", filepath.Join(l.dir, "kubeconfig"),
		"--context", context, "--request-timeout", "5s"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (l *labCLI) kubectlOK(context string, args ...string) string {
	l.t.Helper()
	out, err := l.kubectl(context, args...)
	require.NoError(l.t, err, "kubectl --context %s %v: %s", context, args, out)
	return out
}

// eventuallyOK calls kubectl until it succeeds. What a create without an answer has made is made.
func (l *labCLI) eventuallyOK(context string, args ...string) {
	l.t.Helper()
	eventually(l.t, time.Minute, func() string {
		out, err := l.kubectl(context, args...)
		if err == nil || strings.Contains(out, "AlreadyExists") {
			return ""
		}
		return fmt.Sprintf("kubectl --context %s %v: %s", context, args, out)
	})
}

// machines are the rows of `lab status` by name, each split into its columns.
func (l *labCLI) machines() map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(l.ok("status")) {
		if fields := strings.Fields(line); fields[0] != "MACHINE" {
			rows[fields[0]] = fields
		}
	}
	return rows
}

// Columns of `lab status`.
const (
	labState    = 2
	labRole     = 3
	labRevision = 7
)

// leader waits for a machine to lead, other than the one given.
func (l *labCLI) leader(not string) (name string) {
	l.t.Helper()
	require.Eventually(l.t, func() bool {
		for machine, row := range l.machines() {
			if row[labRole] == "Leader" && machine != not {
				name = machine
				return true
			}
		}
		return false
	}, time.Minute, 50*time.Millisecond)
	return name
}

// TestLab starts one cluster of three servers and an agent, breaks it in every way that there is, and looks whether all is
// well again each time; in the end nothing is left of it.
func TestLab(t *testing.T) {
	l := newLab(t, "--servers", "3", "--agents", "1")
	require.Equal(t, 4, strings.Count(l.ok("status"), "Ready"))
	for _, part := range []struct {
		name string
		run  func(l *labCLI)
	}{
		{"Services", labServices},
		{"Front", labFront},
		{"Delay", labDelay},
		{"Loss", labLoss},
		{"SlowDisk", labSlowDisk},
		{"Clock", labClock},
	} {
		t.Run(part.name, func(t *testing.T) {
			l := &labCLI{t: t, dir: l.dir}
			defer l.whole()
			part.run(l)
		})
	}
	other := &labCLI{t: t, dir: filepath.Join(t.TempDir(), "other")}
	out, err := other.run("up")
	require.Error(t, err)
	require.Contains(t, out, "another lab is up") // and that one is whole, as the scenarios show
	labScenarios(l)
	cgroup := l.cgroup()
	l.ok("down")
	require.NoDirExists(t, l.dir)
	left, err := exec.Command("sh", "-c", "ip netns; ip -o link; ps -eo args; cat /proc/self/mountinfo; nft list tables").CombinedOutput()
	require.NoError(t, err)
	require.NotContains(t, string(left), "kontiki-lab")
	require.NotContains(t, string(left), "klab")
	require.NotContains(t, string(left), l.dir)
	cgroups, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroup)
	require.Empty(t, cgroups)
}

// whole heals the lab and waits until all of it works.
func (l *labCLI) whole() {
	l.t.Helper()
	l.ok("heal")
	l.ok("wait")
}

// cgroup is the name of the lab's.
func (l *labCLI) cgroup() string {
	out := l.ok("exec", "s1", "--", "cat", "/proc/self/cgroup")
	_, after, found := strings.Cut(out, "/kontiki-lab-")
	require.True(l.t, found, out)
	id, _, _ := strings.Cut(after, "/")
	return "kontiki-lab-" + id
}

// labServices reaches a Service from every machine.
func labServices(l *labCLI) {
	l.kubectlOK("s2", "apply", "-f", filepath.Join("..", "..", "examples"))
	l.kubectlOK("s3", "rollout", "status", "deployment/hello", "--timeout=60s")
	service := l.kubectlOK("s1", "get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}")
	for _, machine := range []string{"s1", "s2", "s3", "a1"} {
		require.Contains(l.t, l.ok("exec", machine, "--", "curl", "-sS", "--max-time", "5", "http://"+service+"/"), "I am pod hello-")
	}
}

// labFront has the kubeconfig as it is work whichever server is gone, the first one included.
func labFront(l *labCLI) {
	for _, machine := range []string{"s1", "s2", "s3"} {
		l.ok("kill", machine)
		l.eventuallyOK("lab", "create", "configmap", "without-"+machine)
		l.whole()
	}
	l.kubectlOK("lab", "get", "configmap", "without-s1", "without-s2", "without-s3")
}

// labDelay sees that an answer takes as long as the delay; nothing is lost of a large one.
func labDelay(l *labCLI) {
	l.ok("delay", "s3", "300ms")
	began := time.Now()
	out := l.kubectlOK("s3", "get", "--raw", "/openapi/v2")
	require.GreaterOrEqual(l.t, time.Since(began), 300*time.Millisecond)
	require.Contains(l.t, l.ok("status"), "delay 300ms")
	l.ok("delay", "s3", "0")
	require.Equal(l.t, out, l.kubectlOK("s3", "get", "--raw", "/openapi/v2"))
}

// labLoss has a lossy machine go on, as TCP sends again what is lost.
func labLoss(l *labCLI) {
	l.ok("loss", "s2", "10")
	require.Contains(l.t, l.ok("status"), "loses 10%")
	l.eventuallyOK("s2", "create", "configmap", "through-the-loss")
	l.ok("loss", "s2", "0")
	require.NotContains(l.t, l.ok("status"), "loses")
}

// labSlowDisk counts how long writes take: no more than four a second.
func labSlowDisk(l *labCLI) {
	if out, err := l.run("slow-disk", "s3", "10"); err != nil {
		require.Contains(l.t, out, "this kernel cannot do that")
		l.t.Skip(out)
	}
	began := time.Now()
	l.ok("exec", "s3", "--", "dd", "if=/dev/zero", "of="+filepath.Join(l.dir, "s3", "dd"), "bs=4k", "count=11", "oflag=direct", "status=none")
	require.GreaterOrEqual(l.t, time.Since(began), time.Second, "11 writes at 10 a second")
	l.eventuallyOK("s3", "create", "configmap", "on-a-slow-disk")
}

// labClock sees what time a server writes into objects, also when it has been started anew.
func labClock(l *labCLI) {
	if out, err := l.run("clock", "s1", "+1h"); err != nil {
		require.Contains(l.t, out, "this kernel cannot do that")
		l.t.Skip(out)
	}
	ahead := func(name string) time.Duration {
		l.eventuallyOK("s1", "create", "configmap", name)
		created, err := time.Parse(time.RFC3339, l.kubectlOK("s1", "get", "configmap", name, "-o", "jsonpath={.metadata.creationTimestamp}"))
		require.NoError(l.t, err)
		return time.Until(created)
	}
	require.Greater(l.t, ahead("from-the-future"), 55*time.Minute)
	l.ok("stop", "s1")
	l.ok("start", "s1")
	require.Greater(l.t, ahead("from-the-future-again"), 55*time.Minute)
	l.ok("clock", "s1", "0")
	require.Less(l.t, ahead("from-now"), 5*time.Minute)
}

// TestLabMistakes are what people will type.
func TestLabMistakes(t *testing.T) {
	l := &labCLI{t: t, dir: filepath.Join(t.TempDir(), "lab")}
	if missing != "" {
		t.Skip(missing)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"status"}, "no lab is up"},
		{[]string{"down"}, "no lab is up"},
		{[]string{"up", "--servers", "0"}, "there must be a server"},
		{[]string{"up", "--servers", "500"}, "at most 200 machines"},
		{[]string{"up", "--node-runtime", "docker"}, "neither runc nor simulated"},
		{[]string{"kill"}, "usage: kontiki lab kill NODE"},
		{[]string{"loss", "s1"}, "usage: kontiki lab loss NODE PERCENT"},
		{[]string{"slow-disk", "s1", "-1"}, "no lab is up"},
		{[]string{"clock", "s1"}, "usage: kontiki lab clock NODE DURATION"},
		{[]string{"explode"}, `unexpected "explode"`},
	} {
		out, err := l.run(c.args...)
		require.Error(t, err, "%v", c.args)
		require.Contains(t, out, c.says, "%v", c.args)
	}
}

func without(names []string, name string) (rest []string) {
	for _, n := range names {
		if n != name {
			rest = append(rest, n)
		}
	}
	return rest
}
