package machines

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// threePods are one on each machine.
const threePods = `kontiki kubectl apply -f - <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  replicas: 3
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: hello}}}]
      containers: [{name: hello, image: "kontiki.local/hello:latest", imagePullPolicy: IfNotPresent, command: [/hello, sleep, 24h]}]
YAML`

// TestThreeNodes follows docs/three-nodes.md from nothing: every command in its code blocks and tables, on the machine that
// its prompt names, and looks for what the page says that one sees.
func TestThreeNodes(t *testing.T) {
	const page = "three-nodes.md"
	s := newSite(t, "../../bin")
	s.follow(s.section(page, "Three commands").Steps)
	s.run("n1", threePods)
	s.whole("n1")
	written := s.write("n2")

	seen := map[string]func(){
		"a server's process": func() {
			s.await("n1", "systemctl is-active kontiki-server", "active")
			s.whole("n1")
		},
		"a server, cleanly": func() {
			s.await("n2", addresses, "10.0.0.2 10.0.0.3")
			s.run("n1", "systemctl start kontiki-server")
			s.whole("n1")
		},
		"a machine, for a moment": func() { s.whole("n1") },
		"a server, for good": func() {
			s.await("n2", addresses, "10.0.0.2 10.0.0.3")
			s.await("n2", readyNodes, "n2 n3")
			require.NoError(t, s.machines["n1"].PowerOn(s.ctx()))
			s.whole("n1")
		},
		"two servers": func() {
			s.await("n1", "kontiki kubectl create configmap refused >/dev/null 2>&1 || echo refused", "refused")
			require.Contains(t, s.run("n1", "kontiki ctr ps"), "hello", "its pods go on")
			require.NoError(t, s.machines["n3"].PowerOn(s.ctx()))
			s.await("n1", "kontiki kubectl create configmap accepted 2>/dev/null", "configmap/accepted created")
			require.NoError(t, s.machines["n2"].PowerOn(s.ctx()))
			s.whole("n1")
		},
	}
	kept := map[string]bool{"a server's process": true, "a server, cleanly": true}
	rows := s.section(page, "Break it").Rows
	require.Equal(t, slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(seen)), "every row is looked at")
	for _, what := range []string{"a server's process", "a server, cleanly", "a machine, for a moment", "a server, for good", "two servers"} {
		t.Log(what)
		before := s.run("n1", containers)
		if what == "two servers" {
			written.stop()
		}
		s.follow(rows[what])
		seen[what]()
		if kept[what] {
			require.Equal(t, before, s.run("n1", containers), "its pods never stopped")
		}
	}

	s.follow(s.section(page, "Take a machine out, put it back").Steps)
	s.await("n1", voters, "2")
	s.await("n1", readyNodes, "n1 n2")
	s.nothingLeft("n3")
	written.requireKept("n1")
}

// nothingLeft looks for what an uninstalled node could have left on its machine.
func (s *site) nothingLeft(machine string) {
	require.Empty(s.t, s.run(machine, `
find / -xdev -path /root -prune -o -path /proc -prune -o -path /sys -prune -o -path /var/log -prune -o -iname '*kontiki*' -print
grep kontiki /proc/self/mountinfo
find /sys/fs/cgroup -name '*kontiki*'
ip -o link | grep -E 'kontiki|veth'
nft list tables | grep kontiki
systemctl list-units --all --no-legend | grep kontiki
ps -eo args | grep -E '^[^ ]*(kontiki|/hello)'
true`))
}

// writes is a program on a machine that writes ConfigMaps, one after the other, to whichever server takes them.
type writes struct {
	s       *site
	machine string
}

// write starts it. /root/acknowledged lists what a server has acknowledged.
func (s *site) write(machine string) *writes {
	s.run(machine, `cp -r /var/lib/kontiki/pki writer-pki; cat >writer <<'WRITER'
i=0
while [ ! -e stop ]; do
	i=$((i + 1))
	for server in 10.0.0.2 10.0.0.3 10.0.0.1; do
		code=$(curl -s -m 3 -o /dev/null -w '%{http_code}' --cacert writer-pki/ca.crt --cert writer-pki/admin.crt --key writer-pki/admin.key \
			-H 'Content-Type: application/json' -d "{\"metadata\":{\"name\":\"written-$i\"}}" https://$server:6443/api/v1/namespaces/default/configmaps)
		if [ $code = 201 ]; then echo "$(date +%s.%N) configmap/written-$i" >>acknowledged; break; fi
	done
done
touch stopped
WRITER
setsid bash writer </dev/null >/dev/null 2>&1 &
until [ -s acknowledged ]; do sleep 0.1; done`)
	return &writes{s, machine}
}

func (w *writes) stop() { w.s.run(w.machine, "touch stop; until [ -e stopped ]; do sleep 0.1; done") }

// requireKept checks that what was acknowledged is there, and says how long writes stood still at most.
func (w *writes) requireKept(by string) {
	w.s.t.Log("longest pauses between writes, s:\n" + w.s.run(w.machine, `awk 'NR > 1 {printf "%.2f before %s\n", $1 - last, $2} {last = $1}' acknowledged | sort -rn | head -5`))
	there := strings.Fields(w.s.run(by, "kontiki kubectl get configmaps -o name"))
	acknowledged := strings.Fields(w.s.run(w.machine, "cut -d' ' -f2 acknowledged"))
	require.NotEmpty(w.s.t, acknowledged)
	require.Subset(w.s.t, there, acknowledged)
}
