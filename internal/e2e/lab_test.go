package e2e

import (
	"context"
	"encoding/json"
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

// kubectl calls a machine's API server.
func (l *labCLI) kubectl(machine string, args ...string) (string, error) {
	address := "https://10.89.0.1" + machine[1:] + ":6443"
	cmd := exec.Command(filepath.Join(binDir, "kontiki"), append([]string{"kubectl", "--kubeconfig", filepath.Join(l.dir, "kubeconfig"),
		"--server", address, "--request-timeout", "5s"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
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
	}, 30*time.Second, 50*time.Millisecond)
	return name
}

// TestLab builds a cluster of three, takes its leader, cuts off the next one, and looks whether all is well again.
func TestLab(t *testing.T) {
	l := newLab(t, "--servers", "3", "--agents", "1")
	require.Equal(t, 4, strings.Count(l.ok("status"), "Ready"))
	out, err := l.kubectl("s2", "apply", "-f", filepath.Join("..", "..", "examples"))
	require.NoError(t, err, out)
	out, err = l.kubectl("s3", "rollout", "status", "deployment/hello", "--timeout=60s")
	require.NoError(t, err, out)
	service, err := l.kubectl("s1", "get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}")
	require.NoError(t, err, service)
	for _, machine := range []string{"s1", "s2", "s3", "a1"} { // Services from every machine, and DNS
		require.Contains(t, l.ok("exec", machine, "--", "curl", "-sS", "--max-time", "5", "http://"+service+"/"), "I am pod hello-")
	}

	first := l.leader("")
	l.ok("kill", first)
	second := l.leader(first)
	require.Eventually(t, func() bool {
		_, err := l.kubectl(second, "create", "configmap", "after-the-kill")
		return err == nil
	}, 30*time.Second, 50*time.Millisecond, "a new leader takes writes")
	require.Equal(t, "gone", l.machines()[first][labState])
	l.ok("start", first)
	require.Eventually(t, func() bool { return l.machines()[first][labRole] == "Follower" }, 30*time.Second, 50*time.Millisecond)

	others := strings.Join(without([]string{"s1", "s2", "s3", "a1"}, second), ",")
	l.ok("partition", second, "|", others)
	third := l.leader(second)
	_, err = l.kubectl(second, "create", "configmap", "in-the-minority")
	require.Error(t, err, "a leader without a majority takes no write")
	_, err = l.kubectl(second, "get", "configmap", "after-the-kill")
	require.Error(t, err, "and answers no consistent read")
	require.Eventually(t, func() bool {
		_, err := l.kubectl(third, "create", "configmap", "in-the-majority")
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)

	l.ok("heal")
	require.Eventually(t, func() bool {
		out, err := l.kubectl(second, "get", "configmaps", "-o", "name")
		return err == nil && strings.Contains(out, "in-the-majority") && strings.Contains(out, "after-the-kill")
	}, 30*time.Second, 50*time.Millisecond, "the one that was cut off has caught up")

	var made struct{ Cgroups string }
	state, err := os.ReadFile(filepath.Join(l.dir, "lab.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(state, &made))
	l.ok("down")
	require.NoDirExists(t, l.dir)
	left, err := exec.Command("sh", "-c", "ip netns; ip -o link; ps -eo args").CombinedOutput()
	require.NoError(t, err)
	require.NotContains(t, string(left), "kontiki-lab")
	require.NotContains(t, string(left), l.dir)
	require.NotEmpty(t, made.Cgroups)
	cgroups, _ := filepath.Glob("/sys/fs/cgroup/*/" + made.Cgroups + "-*")
	require.Empty(t, cgroups)
}

func without(names []string, name string) (rest []string) {
	for _, n := range names {
		if n != name {
			rest = append(rest, n)
		}
	}
	return rest
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
		{[]string{"explode"}, `unexpected "explode"`},
	} {
		out, err := l.run(c.args...)
		require.Error(t, err, "%v", c.args)
		require.Contains(t, out, c.says, "%v", c.args)
	}
}
