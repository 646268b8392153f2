package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/control"
)

// testServer is `kontiki server --agent=false` on loopback, or at another address, with ports of its own that it keeps.
type testServer struct {
	*background
	name, dir, address       string
	https, clientPort, peers string
}

func newServer(t *testing.T, name string) *testServer {
	return &testServer{
		background: newBackground(t), name: name, dir: filepath.Join(t.TempDir(), name), address: "127.0.0.1", https: freePort(t), clientPort: freePort(t), peers: freePort(t),
	}
}

func (s *testServer) args(more ...string) []string {
	return append([]string{"server", "--agent=false", "--data-dir", s.dir, "--node-name", s.name, "--bind-address", s.address, "--node-ip", s.address,
		"--https-port", s.https, "--client-port", s.clientPort, "--peer-port", s.peers}, more...)
}

func (s *testServer) start(more ...string) {
	s.t.Helper()
	s.run(s.args(more...)...)
}

// ready waits until the log says so.
func (s *testServer) ready() {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Log(s.name, " says: ", s.logged())
		}
	}()
	require.Eventually(s.t, func() bool { return strings.Contains(s.logged(), "msg=ready") }, 60*time.Second, 20*time.Millisecond, s.name)
}

// fails waits for the server to end by itself and returns the last line of what it said.
func (s *testServer) fails() string {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(60 * time.Second):
		s.t.Fatal("it should have ended: ", s.logged())
	}
	require.Equal(s.t, 1, s.cmd.ProcessState.ExitCode())
	lines := strings.Split(strings.TrimSpace(s.logged()), "\n")
	return lines[len(lines)-1]
}

func (s *testServer) copyKeys(from *testServer) {
	s.t.Helper()
	require.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, "pki")))
	require.NoError(s.t, os.CopyFS(filepath.Join(s.dir, "pki"), os.DirFS(filepath.Join(from.dir, "pki"))))
	keys, err := filepath.Glob(filepath.Join(s.dir, "pki", "*.key"))
	require.NoError(s.t, err)
	for _, key := range keys {
		require.NoError(s.t, os.Chmod(key, 0o600)) // as cp -p
	}
}

func (s *testServer) store(args ...string) string {
	s.t.Helper()
	out, errOut, code := run(append(append([]string{"store"}, args...), "--data-dir", s.dir)...)
	require.Zero(s.t, code, errOut)
	return out
}

func (s *testServer) kubectl(args ...string) string {
	s.t.Helper()
	out, errOut, code := run(append([]string{"kubectl", "--kubeconfig", filepath.Join(s.dir, adminKubeconfig)}, args...)...)
	require.Zero(s.t, code, errOut)
	return strings.TrimSpace(out)
}

func (s *testServer) members() map[string]control.StoreMember {
	s.t.Helper()
	var list []control.StoreMember
	require.NoError(s.t, json.Unmarshal([]byte(s.store("members", "-o", "json")), &list))
	members := map[string]control.StoreMember{}
	for _, m := range list {
		members[m.Name] = m
	}
	return members
}

// voters waits until so many members vote and answer.
func (s *testServer) voters(want int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		n := 0
		for _, m := range s.members() {
			if !m.Learner && m.Status != nil {
				n++
			}
		}
		return n == want
	}, 60*time.Second, 100*time.Millisecond)
}

// startThree starts three servers, the second and third of which join the first.
func startThree(t *testing.T) (a, b, c *testServer) {
	a, b, c = newServer(t, "n1"), newServer(t, "n2"), newServer(t, "n3")
	a.start()
	a.ready()
	for _, s := range []*testServer{b, c} {
		s.copyKeys(a)
		s.start("--join", a.url())
		s.ready()
	}
	a.voters(3)
	return a, b, c
}

// TestServers is a cluster of three: each has an API server, leadership is handed over, a cold start needs two of them, a
// removed one does not come back, a lost disk is replaced.
func TestServers(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three servers for most of a minute")
	}
	a, b, c := startThree(t)
	a.kubectl("create", "configmap", "kept")
	require.Equal(t, "configmap/kept", c.kubectl("get", "configmap", "kept", "-o", "name"))
	n3 := a.members()["n3"]
	b.store("members", "lead", n3.ID)
	require.Equal(t, "Leader", a.members()["n3"].Status.Role)
	c.stop() // hands leadership over
	b.kubectl("create", "configmap", "second")

	c.start("--join", a.url()) // as a unit file would: it is a member already
	c.ready()
	require.Equal(t, "configmap/second", c.kubectl("get", "configmap", "second", "-o", "name"))
	for _, s := range []*testServer{a, b, c} {
		s.kill()
	}
	c.start() // a cold start, the last one first
	require.Eventually(t, func() bool { _, _, code := run("store", "status", "--data-dir", c.dir); return code == 0 }, time.Minute, 50*time.Millisecond,
		"one can look into a member that waits for a quorum")
	b.start("--join", a.url())
	b.ready()
	c.ready()
	a.start()
	a.ready()

	b.store("members", "remove", n3.ID)
	require.Contains(t, c.fails(), "not a member of the cluster any more: to join again, move "+filepath.Join(c.dir, "store")+" away")
	c.start()
	require.Contains(t, c.fails(), "not a member of the cluster any more")
	require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "store")))
	c.start("--join", a.url()+","+b.url())
	c.ready()
	a.voters(3)

	b.kill() // its disk is lost: it comes back empty
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "store")))
	b.start("--join", a.url())
	b.ready()
	a.voters(3)
	require.Len(t, a.members(), 3)
	require.Equal(t, "configmap/kept", b.kubectl("get", "configmap", "kept", "-o", "name"))
	a.store("hash")
}

// TestJoinErrors: what an operator can get wrong is one line that says what to do.
func TestJoinErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a member that cannot join")
	}
	a := newServer(t, "n1")
	a.start()
	a.ready()
	b := newServer(t, "n2")
	b.start("--join", a.url())
	require.Contains(t, b.fails(), "or copy the directory pki/ of a server of that cluster to "+filepath.Join(b.dir, "pki"))
	require.NoDirExists(t, filepath.Join(b.dir, "pki"))

	b.start() // alone, by mistake
	b.ready()
	b.stop()
	require.NoError(t, os.Rename(filepath.Join(b.dir, "store"), filepath.Join(b.dir, "alone")))
	b.start("--join", a.url())
	require.Contains(t, b.fails(), "the keys in "+filepath.Join(b.dir, "pki")+" are not of that cluster")

	b.copyKeys(a)
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "store")))
	require.NoError(t, os.Rename(filepath.Join(b.dir, "alone"), filepath.Join(b.dir, "store")))
	b.start("--join", a.url())
	require.Contains(t, b.fails(), "to join, move "+filepath.Join(b.dir, "store")+" away first")

	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "store")))
	b.name = "n1"
	b.start("--join", a.url())
	require.Contains(t, b.fails(), "choose another node name")
	b.name = "n2"
	b.start("--join", "https://127.0.0.1:"+freePort(t))
	require.Contains(t, b.fails(), "connection refused")
}

// TestStoreRecover_RF11: two of three disks are lost; recovery is refused while it is not needed, and then goes on with
// what the last one has, to three members again. A snapshot taken before restores a cluster whose old watches are refused.
func TestStoreRecover_RF11(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three servers for most of a minute")
	}
	a, b, c := startThree(t)
	a.kubectl("create", "configmap", "kept")
	file := filepath.Join(t.TempDir(), "snapshot")
	c.store("snapshot", "save", file)
	version := a.kubectl("create", "configmap", "later", "-o", "jsonpath={.metadata.resourceVersion}")
	a.stop()
	_, errOut, code := run("store", "recover", "--yes", "--data-dir", a.dir)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "a majority of the members can be reached")
	for _, s := range []*testServer{b, c} {
		s.kill()
		require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "store")))
	}
	a.store("recover", "--yes")
	a.start()
	a.ready()
	require.Equal(t, version, a.kubectl("get", "configmap", "later", "-o", "jsonpath={.metadata.resourceVersion}"))
	for _, s := range []*testServer{b, c} {
		s.start("--join", a.url())
		s.ready()
	}
	a.voters(3)
	require.Len(t, a.members(), 3)
	b.kubectl("create", "configmap", "after")

	for _, s := range []*testServer{a, b, c} {
		s.kill()
		require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "store")))
	}
	b.store("snapshot", "restore", file)
	b.start()
	b.ready()
	require.Equal(t, "configmap/kept", b.kubectl("get", "configmap", "kept", "-o", "name"))
	_, errOut, code = run("kubectl", "--kubeconfig", filepath.Join(b.dir, adminKubeconfig), "get", "configmap", "later")
	require.Equal(t, 1, code, errOut)
	out, errOut, _ := run("kubectl", "--kubeconfig", filepath.Join(b.dir, adminKubeconfig), "get", "--raw",
		"/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=5&resourceVersion="+version)
	require.Regexp(t, `"code": ?410|too old resource version|Expired`, out+errOut, "an old watch has to list anew")
	a.start("--join", b.url())
	a.ready()
	b.voters(2)
	require.Equal(t, "configmap/kept", a.kubectl("get", "configmap", "kept", "-o", "name"))
}
