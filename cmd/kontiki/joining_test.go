package main

import (
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/hostcheck"
	"kontiki/internal/pki"
)

// testAgent is `kontiki agent` with a simulated runtime.
type testAgent struct {
	*background
	dir, port string
}

func newAgent(t *testing.T) *testAgent {
	return &testAgent{background: newBackground(t), dir: filepath.Join(t.TempDir(), "w1"), port: freePort(t)}
}

// start runs the agent at the machine's own address: nobody gets a certificate for a loopback one.
func (a *testAgent) start(server string, more ...string) {
	a.t.Helper()
	a.run(append([]string{"agent", "--data-dir", a.dir, "--node-name", "w1", "--server", server, "--node-ip", hostcheck.NodeIP().String(),
		"--agent-port", a.port, "--node-runtime", "simulated"}, more...)...)
}

func (s *testServer) url() string { return "https://" + s.address + ":" + s.https }

// command runs a command on the server's data directory.
func (s *testServer) command(args ...string) string {
	s.t.Helper()
	out, errOut, code := run(append(args, "--data-dir", s.dir)...)
	require.Zero(s.t, code, errOut)
	return strings.TrimSpace(out)
}

// nodeAnswers waits until the API server gets through to the agent of w1.
func (s *testServer) nodeAnswers() {
	s.t.Helper()
	var out, errOut string
	answers := func() bool {
		out, errOut, _ = run("kubectl", "--kubeconfig", filepath.Join(s.dir, adminKubeconfig), "get", "--raw", "/api/v1/nodes/w1/proxy/healthz")
		return out == "ok"
	}
	for deadline := time.Now().Add(time.Minute); !answers(); time.Sleep(100 * time.Millisecond) {
		require.True(s.t, time.Now().Before(deadline), "%s%s", out, errOut)
	}
}

// TestAgentJoins_RB03_RB04: the printed command joins a node. It goes on when the token is gone, and through a rotation of
// the authority, which is not finished before the node has followed.
func TestAgentJoins_RB03_RB04(t *testing.T) {
	if hostcheck.NodeIP().IsLoopback() {
		t.Skip("needs an address of this machine that is not loopback")
	}
	s := newServer(t, "n1")
	s.start()
	s.ready()
	command := strings.Fields(s.command("token", "create", "--description", "rack 7"))
	require.Equal(t, []string{"kontiki", "agent", "--server", s.url(), "--token"}, command[:5])
	token := command[5]
	a := newAgent(t)

	a.start(s.url(), "--token", "K10"+strings.Repeat("0", 64)+token[67:])
	<-a.ended
	require.Contains(t, a.logged(), "none of the authorities it shows has the token's CA hash")
	_, rest, _ := strings.Cut(token, "::")
	a.start(s.url(), "--token", rest)
	<-a.ended
	require.Equal(t, 2, a.cmd.ProcessState.ExitCode())
	require.Contains(t, a.logged(), "does not name the cluster")

	a.start(s.url(), "--token", token)
	s.nodeAnswers()
	id, secret, _ := strings.Cut(rest, ".")
	require.NotContains(t, a.logged(), secret)
	list := s.command("token", "list")
	require.Contains(t, list, "rack 7")
	require.NotContains(t, list, secret)
	s.command("token", "revoke", id)
	require.NotContains(t, s.command("token", "list"), id)
	_, errOut, code := run("token", "revoke", id, "--data-dir", s.dir)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "there is no token")

	a.stop()
	s.kubectl("delete", "node", "w1") // it registers anew with its certificate
	a.start(s.url())
	s.nodeAnswers()
	other := newAgent(t)
	other.start(s.url(), "--token", token)
	<-other.ended
	require.Contains(t, other.logged(), "refuses the token "+id)

	s.command("certs", "rotate", "start")
	_, errOut, code = run("certs", "rotate", "finish", "--data-dir", s.dir)
	require.Equal(t, 1, code, "the agent looks every twenty seconds")
	require.Contains(t, errOut, "node w1")
	require.Contains(t, errOut, "Nothing was dropped")
	require.Contains(t, s.command("certs", "status"), "old: trusted until rotate finish")
	require.Eventually(t, func() bool {
		_, _, code := run("certs", "rotate", "finish", "--data-dir", s.dir)
		return code == 0
	}, 60*time.Second, 500*time.Millisecond)
	s.nodeAnswers()
	require.NotContains(t, s.command("certs", "status"), "old authority")
	require.Equal(t, "node/w1", s.kubectl("get", "node", "w1", "-o", "name"))
}

// TestServersJoin_RB04: a second server gets the cluster's keys with a token for servers, and follows a rotation.
func TestServersJoin_RB04(t *testing.T) {
	if testing.Short() {
		t.Skip("runs two servers")
	}
	s := newServer(t, "n1")
	s.start()
	s.ready()
	b := newServer(t, "n2")
	join := []string{"--join", s.url(), "--token"}
	b.start(append(join, s.command("token", "create", "-q"))...)
	require.Contains(t, b.fails(), "it is not for this: make one with `kontiki token create`")
	require.NoDirExists(t, filepath.Join(b.dir, "pki"))
	b.start("--join", s.url())
	require.Contains(t, b.fails(), "cannot join: give --token")

	command := strings.Fields(s.command("token", "create", "--for", "server", "--ttl", "10m"))
	require.Equal(t, []string{"kontiki", "server", "--join", s.url(), "--token"}, command[:5])
	b.start(append(join, command[5])...)
	b.ready()
	s.voters(2)
	s.kubectl("create", "configmap", "kept")
	require.Equal(t, "configmap/kept", b.kubectl("get", "configmap", "kept", "-o", "name"))
	require.Contains(t, s.logged(), "keys were handed to a server")

	s.command("certs", "rotate", "start")
	require.Equal(t, "configmap/kept", b.kubectl("get", "configmap", "kept", "-o", "name"))
	b.command("certs", "fetch", "--server", s.url())
	require.Equal(t, "nothing is new", b.command("certs", "fetch", "--server", s.url()))
	s.command("certs", "rotate", "finish")
	b.command("certs", "fetch", "--server", s.url())
	for _, one := range []*testServer{s, b} {
		require.NotContains(t, one.command("certs", "status"), "old authority")
		require.Equal(t, "configmap/kept", one.kubectl("get", "configmap", "kept", "-o", "name"))
	}
	b.stop()
	b.start("--join", s.url()) // it is a member, and has the keys
	b.ready()
	require.Equal(t, "configmap/kept", b.kubectl("get", "configmap", "kept", "-o", "name"))
}

// TestExpiredCluster_RB06: a server whose certificates have all expired comes back by starting it, and by command; the
// status says what has expired.
func TestExpiredCluster_RB06(t *testing.T) {
	s := newServer(t, "n1")
	past := func() time.Time { return time.Now().Add(-13 * 30 * 24 * time.Hour) }
	_, err := pki.Open(filepath.Join(s.dir, "pki"), pki.Options{NodeName: "n1", Now: past})
	require.NoError(t, err)
	list, _, code := run("certs", "status", "--data-dir", s.dir)
	require.Equal(t, 1, code)
	require.Equal(t, 10, strings.Count(list, "expired"), list)
	s.start()
	s.ready()
	require.NotContains(t, s.command("certs", "status"), "expired")
	s.stop()

	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "pki")))
	past = func() time.Time { return time.Now().Add(-11 * 365 * 24 * time.Hour) }
	_, err = pki.Open(filepath.Join(s.dir, "pki"), pki.Options{NodeName: "n1", Now: past})
	require.NoError(t, err)
	s.start()
	require.Contains(t, s.fails(), "ca.crt: expired on ")
	require.Contains(t, s.logged(), "kontiki certs renew")
	require.Contains(t, s.command("certs", "renew"), "wrote "+filepath.Join(s.dir, adminKubeconfig))
	s.start()
	s.ready()
	require.Equal(t, "namespace/default", s.kubectl("get", "namespace", "default", "-o", "name"))

	before := leafOf(t, s.dir, "admin")
	require.Equal(t, "renewed admin", s.command("certs", "renew", "admin")) // of a running server
	require.NotEqual(t, before.SerialNumber, leafOf(t, s.dir, "admin").SerialNumber)
	require.Equal(t, "namespace/default", s.kubectl("get", "namespace", "default", "-o", "name"))
	var entries []pki.Entry
	require.NoError(t, json.Unmarshal([]byte(s.command("certs", "status", "-o", "json")), &entries))
	require.Greater(t, len(entries), 10)
}

func leafOf(t *testing.T, dir, name string) *x509.Certificate {
	data, err := os.ReadFile(filepath.Join(dir, "pki", name+".crt"))
	require.NoError(t, err)
	list, err := pki.ParseCertificates(data)
	require.NoError(t, err)
	return list[0]
}

func TestWrongUseOfCertsAndTokens(t *testing.T) {
	for args, message := range map[string]string{
		"certs rotate start nobody":            `"nobody" is none of`,
		"certs fetch":                          "--server: must be the URL",
		"certs status -o xml":                  `--output: "xml" is neither`,
		"token create --for people":            `--for: "people" is neither agent nor server`,
		"token create --usages all":            `--usages: "all" is neither`,
		"token create --ttl -1h":               "--ttl: -1h0m0s is negative",
		"token create --for server --ttl 0":    "must expire",
		"token revoke":                         "usage: kontiki token revoke ID…",
		"agent --token abcdef":                 "--token: it must begin with K10",
		"agent --pki-dir /nowhere":             "--pki-dir: ",
		"agent --server http://127.0.0.1:6443": "is not a URL such as https",
	} {
		_, errOut, code := run(append(strings.Fields(args), "--data-dir", t.TempDir())...)
		require.Equal(t, 2, code, args+": "+errOut)
		require.Contains(t, errOut, message, args)
	}
	_, errOut, code := run("certs", "renew", "--data-dir", t.TempDir())
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "has no authority")
}

// TestClusterIsLearned: what all machines must agree on is given to the first server alone. A server that joins by another than
// the first learns it, so does an agent; a flag that contradicts it is refused, and so is a version with another protocol.
func TestClusterIsLearned(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three servers")
	}
	t.Parallel()
	s := newServer(t, "n1")
	s.start("--service-cidr", "10.77.0.0/16", "--cluster-cidr", "10.88.0.0/16", "--cluster-domain", "balsa.local")
	s.ready()
	b := newServer(t, "n2")
	join := []string{"--join", s.url(), "--token", s.command("token", "create", "-q", "--for", "server", "--ttl", "10m")}
	b.start(append(join, "--service-cidr", "10.96.0.0/16")...)
	require.Contains(t, b.fails(), "--service-cidr is 10.96.0.0/16 here and 10.77.0.0/16 in the cluster")

	require.NoError(t, os.RemoveAll(b.dir))
	b.env = []string{otherVersion + "=v9", otherProtocol + "=2"}
	b.start(join...)
	require.Contains(t, b.fails(), "this is kontiki v9 (protocol 2): install the same version here")
	require.NoDirExists(t, filepath.Join(b.dir, "pki"), "it gets no keys")

	b.env = nil
	b.start(join...)
	b.ready()
	c := newServer(t, "n3")
	c.start(append([]string{"--join", b.url()}, join[2:]...)...) // any server can be the one
	c.ready()
	s.voters(3)
	require.Equal(t, "10.77.0.0/16", c.kubectl("get", "servicecidr", "kubernetes", "-o", "jsonpath={.spec.cidrs[0]}"))
	c.kubectl("create", "service", "clusterip", "made-by-c", "--tcp=80")
	require.Regexp(t, `^10\.77\.`, c.kubectl("get", "service", "made-by-c", "-o", "jsonpath={.spec.clusterIP}"))

	a := newAgent(t)
	a.start(c.url(), "--token", b.command("token", "create", "-q"))
	var learned map[string]string
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(filepath.Join(a.dir, clusterFile))
		return err == nil && json.Unmarshal(data, &learned) == nil
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, []string{"10.77.0.0/16", "10.88.0.0/16", "balsa.local"}, []string{learned["serviceCIDR"], learned["clusterCIDR"], learned["clusterDomain"]})
	c.stop()
	c.start() // it has kept them, too
	c.ready()
	c.kubectl("create", "service", "clusterip", "later", "--tcp=80")
	require.Regexp(t, `^10\.77\.`, c.kubectl("get", "service", "later", "-o", "jsonpath={.spec.clusterIP}"))
}
