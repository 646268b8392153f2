package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/hostcheck"
)

// startThreeAt is startThree at an address that may be advertised, which loopback ones may not.
func startThreeAt(t *testing.T, address string) (servers [3]*testServer) {
	for i := range servers {
		s := newServer(t, fmt.Sprint("n", i+1))
		s.address = address
		if servers[i] = s; i == 0 {
			s.start()
		} else {
			s.copyKeys(servers[0])
			s.start("--join", servers[0].url())
		}
		s.ready()
	}
	servers[0].voters(3)
	return servers
}

// endpoints are those of the Service kubernetes as a server has them.
func (s *testServer) endpoints() []string {
	s.t.Helper()
	return strings.Fields(s.kubectl("get", "endpoints", "kubernetes", "-o", `jsonpath={range .subsets[*]}{.ports[0].port}{"\n"}{end}`))
}

// leased waits until the node w1 has renewed its Lease once more.
func (s *testServer) leased() {
	s.t.Helper()
	renewed := func() string {
		out, _, _ := run("kubectl", "--kubeconfig", filepath.Join(s.dir, adminKubeconfig), "get", "lease", "w1", "-n", "kube-node-lease", "-o", "jsonpath={.spec.renewTime}")
		return out
	}
	before := renewed()
	require.Eventually(s.t, func() bool { now := renewed(); return now != "" && now != before }, time.Minute, 100*time.Millisecond)
}

// TestFailOver: the server that an agent was given is killed, and is gone from the endpoints of the Service kubernetes; the
// agent goes on with the others, also when it is started anew; controllers go on in another server. A server that is stopped
// is gone from the endpoints when it is, and the agent goes on with the last one when there is a quorum.
func TestFailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three servers for half a minute")
	}
	t.Parallel() // it waits most of the time
	address := hostcheck.NodeIP()
	if address.IsLoopback() {
		t.Skip("needs an address of this machine that is not loopback")
	}
	servers := startThreeAt(t, address.String())
	require.ElementsMatch(t, []string{servers[0].https, servers[1].https, servers[2].https}, servers[2].endpoints())
	holder := servers[1].kubectl("get", "lease", "kontiki-controllers", "-n", "kube-system", "-o", "jsonpath={.spec.holderIdentity}")
	first := servers[holder[1]-'1']
	rest := append(append([]*testServer{}, servers[:holder[1]-'1']...), servers[holder[1]-'0':]...)

	a := newAgent(t)
	a.start(first.url(), "--token", first.command("token", "create", "-q"))
	first.leased()
	known := filepath.Join(a.dir, "servers.json")
	require.Eventually(t, func() bool { data, _ := os.ReadFile(known); return strings.Count(string(data), "https://") == 3 }, time.Minute, 20*time.Millisecond)

	first.kill()
	rest[0].leased()
	a.stop()
	a.start(first.url()) // it knows of the others
	rest[1].leased()
	require.Eventually(t, func() bool { return len(rest[0].endpoints()) == 2 }, time.Minute, 100*time.Millisecond)
	require.NotContains(t, rest[1].endpoints(), first.https)
	rest[1].kubectl("create", "deployment", "after", "--image", "none")
	require.Eventually(t, func() bool { return rest[0].kubectl("get", "pods", "-l", "app=after", "-o", "name") != "" }, time.Minute, 100*time.Millisecond)

	first.start()
	first.ready()
	first.voters(3)
	require.Len(t, first.endpoints(), 3)
	rest[0].stop()
	require.ElementsMatch(t, []string{first.https, rest[1].https}, first.endpoints())
	first.leased()
}
