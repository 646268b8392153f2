package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The network of a lab has these for load balancers.
const balancerPool = "10.89.0.128/28"

const edgeManifest = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: s3
  containers:
  - {name: web, image: "kontiki.local/hello:latest", imagePullPolicy: Never, args: [serve, ":8080"], readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules: [{host: web.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
`

// TestEdge reaches a Service from outside of the cluster in the two ways that flags of the servers ask for: at an address of its own,
// which another machine answers for when the one that does is lost, and by the name that an Ingress gives it.
func TestEdge(t *testing.T) {
	l := &traffic{labCLI: newLab(t, "--servers", "3", "--server-flag=--load-balancer-cidr="+balancerPool, "--server-flag=--ingress",
		"--server-flag=--ingress-default"), api: "s3"}
	l.eventually("the manifest", func() error { return l.apply(edgeManifest) })
	var address string
	l.eventually("an address", func() error {
		address = l.must("get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
		given, err := netip.ParseAddr(address)
		if err != nil || !netip.MustParsePrefix(balancerPool).Contains(given) {
			return fmt.Errorf("the Service has the address %q", address)
		}
		return nil
	})
	l.eventually("the load balancer", func() error { return fetch(address, "") })
	for _, machine := range []string{"s1", "s2", "s3"} {
		l.eventually("the Ingress at "+machine, func() error { return fetch(labAddress(machine), "web.example") })
		require.ErrorContains(t, fetch(labAddress(machine), "other.example"), "404")
	}
	l.eventually("the Ingress's status", func() error {
		if at := l.must("get", "ingress", "web", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}"); !strings.Contains(at, labAddress("s1")) {
			return fmt.Errorf("the Ingress says %q", at)
		}
		return nil
	})

	// The machine that answers for the address stands still. If the pod runs there, only its server and agent end.
	owner := l.ownerOf(address)
	if owner == "s3" {
		l.api = "s1"
		l.ok("kill", owner)
	} else {
		l.ok("pause", owner)
	}
	l.eventually("another machine answers", func() error {
		if now := l.holder(address); now == "" || now == owner {
			return fmt.Errorf("it is %q that has %s", now, address)
		}
		return fetch(address, "")
	})
}

// holder is the machine that has an address, empty if none or several do.
func (l *traffic) holder(address string) (holder string) {
	for _, machine := range []string{"s1", "s2", "s3"} {
		out, err := l.run("exec", machine, "ip", "-o", "addr")
		if err == nil && strings.Contains(out, " "+address+"/") {
			if holder != "" {
				return ""
			}
			holder = machine
		}
	}
	return holder
}

func (l *traffic) ownerOf(address string) (owner string) {
	l.t.Helper()
	l.eventually("somebody has "+address, func() error {
		if owner = l.holder(address); owner == "" {
			return fmt.Errorf("nobody has %s", address)
		}
		return nil
	})
	return owner
}

// fetch gets a page as a client outside would: each time on a connection of its own.
func fetch(address, host string) error {
	request, err := http.NewRequest(http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	request.Host, request.Close = host, true
	answer, err := (&http.Client{Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %q %v", address, host, answer.Status, body, err)
	}
	return nil
}
