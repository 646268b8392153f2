package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTraffic_NW03 sends packets along every way that there is in a cluster of three machines (ways_test.go): TCP and UDP between
// pods of one machine and of several, to Services, to itself through a Service, from machines, from outside to node ports and to
// a load balancer's address, and names, all by both IP families; and each API server reaches a webhook in a pod. It does so again
// while an agent is away, after its restart, after a machine was reset, and when a member of the store is lost.
func TestTraffic_NW03(t *testing.T) {
	l := &traffic{labCLI: newLab(t, "--servers", "3", "--dual-stack"), api: "s1"}
	var manifest strings.Builder
	require.NoError(t, trafficManifest.Execute(&manifest, trafficPods))
	l.eventually("the manifest", func() error { return l.apply(manifest.String()) })
	l.front = l.clusterIPs("front")
	l.must("patch", "service", "front", "--subresource", "status", "--type", "merge", "-p",
		fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q},{"ip":%q}]}}}`, balancerAddresses[0], balancerAddresses[1]))
	for i, address := range balancerAddresses {
		out, err := exec.Command("ip", "route", "add", address, "via", labAddresses("s2")[i]).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	l.allArrives("at first")
	l.webhook()

	l.ok("kill", "s2") // its server and its agent; the rules and the pods stay, but names are not served there
	require.NoError(t, l.try(l.fromOutside(), l.fromMachine("s1"), l.fromMachine("s2"), l.fromMachine("s3")), "while the agent is away")
	l.eventually("a pod while another agent is away", func() error { return l.try(l.fromPod("echo-s1")) })
	before := l.pods["echo-s2"]
	l.ok("start", "s2")
	l.allArrives("after the agent's restart")
	require.Equal(t, before, l.pods["echo-s2"])
	require.Equal(t, "0 0 0", l.restarts("echo-s2"), "its containers have lived on")

	l.ok("reboot", "s3")
	l.eventually("a reset", func() error { // until then the API has the pod as it was
		if restarts := l.restarts("echo-s3"); slices.Contains(strings.Fields(restarts), "0") {
			return fmt.Errorf("restarts: %s", restarts)
		}
		return nil
	})
	l.allArrives("after a reset")

	lost := l.leader("")
	l.ok("kill", lost)
	l.leader(lost)
	l.survives(lost)
}

// clusterIPs are a Service's, one of each IP family.
func (l *traffic) clusterIPs(service string) []string {
	l.t.Helper()
	addresses := strings.Fields(l.must("get", "service", service, "-o", "jsonpath={.spec.clusterIPs[*]}"))
	require.Len(l.t, addresses, 2)
	return addresses
}

// restarts are how often each container of a pod was started again.
func (l *traffic) restarts(pod string) string {
	return l.must("get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[*].restartCount}")
}

// survives has a new pod and its Service be reached from the machines that are left.
func (l *traffic) survives(lost string) {
	rest := without([]string{"s1", "s2", "s3"}, lost)
	l.api = rest[0]
	var manifest strings.Builder
	require.NoError(l.t, trafficManifest.Execute(&manifest, []string{"late-" + rest[1]}))
	l.eventually("a new leader", func() error { return l.apply(manifest.String()) })
	service := l.clusterIPs("only-late-" + rest[1])
	var sources []source
	for _, machine := range rest {
		node, pod := l.fromMachine(machine), l.fromPod("echo-"+machine)
		node.targets = toService(service...)
		pod.targets = append(toService("only-late-"+rest[1]), "dns://late-"+rest[1]+".names.default.svc.cluster.local")
		sources = append(sources, node, pod)
	}
	l.eventually("after the loss of "+lost, func() error { return l.try(sources...) })
}
