package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// rowText is a row as kubectl get -o wide would show it at noon.
func rowText(t *testing.T, r *Resource, body string) string {
	obj := r.New()
	require.NoError(t, json.Unmarshal([]byte(body), obj))
	var cells []string
	for _, c := range r.Row(obj, noon) {
		cells = append(cells, fmt.Sprint(c))
	}
	return strings.Join(cells, " | ")
}

func TestRows(t *testing.T) {
	const meta = `"metadata":{"name":"x","creationTimestamp":"2026-05-01T11:00:00Z"`
	events := schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	slices := schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	table := Builtin(Options{})
	for _, c := range []struct {
		resource   schema.GroupVersionResource
		body, want string
	}{
		{core("services"), `{` + meta + `},"spec":{"type":"NodePort","clusterIPs":["10.0.0.1"],"selector":{"a":"b"},"ports":[{"port":80,"nodePort":30080,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}}`,
			"x | NodePort | 10.0.0.1 | <none> | 80:30080/TCP,53/UDP | 60m | a=b"},
		{core("services"), `{` + meta + `},"spec":{"type":"LoadBalancer"}}`, "x | LoadBalancer | <none> | <pending> | <none> | 60m | <none>"},
		{core("services"), `{` + meta + `},"spec":{"type":"LoadBalancer","externalIPs":["9.9.9.9"]},"status":{"loadBalancer":{"ingress":[{"ip":"5.5.5.5"},{"hostname":"a.b"}]}}}`,
			"x | LoadBalancer | <none> | 5.5.5.5,a.b,9.9.9.9 | <none> | 60m | <none>"},
		{core("services"), `{` + meta + `},"spec":{"type":"ExternalName","externalName":"a.b"}}`, "x | ExternalName | <none> | a.b | <none> | 60m | <none>"},
		{core("nodes"), `{` + meta + `,"labels":{"node-role.kubernetes.io/control-plane":"","kubernetes.io/role":"old"}},"spec":{"unschedulable":true},
			"status":{"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"InternalIP","address":"10.0.0.2"}],
			"nodeInfo":{"kubeletVersion":"v1.37.2","osImage":"Debian","kernelVersion":"6.1","architecture":"amd64","containerRuntimeVersion":"kontiki://1"}}}`,
			"x | Ready,SchedulingDisabled | control-plane,old | 60m | v1.37.2 | 10.0.0.2 | <none> | Debian | 6.1 (amd64) | kontiki://1"},
		{core("nodes"), `{` + meta + `}}`, "x | Unknown | <none> | 60m |  | <none> | <none> | <unknown> | <unknown> | <unknown>"},
		{core("endpoints"), `{` + meta + `},"subsets":[{"addresses":[{"ip":"1.1.1.1"},{"ip":"1.1.1.2"}],"ports":[{"port":80},{"port":81}]}]}`,
			"x | 1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 1 more... | 60m"},
		{core("endpoints"), `{` + meta + `}}`, "x | <none> | 60m"},
		{slices, `{` + meta + `},"addressType":"IPv4","ports":[{"port":80}],"endpoints":[{"addresses":["1.1.1.1"]},{"addresses":["1.1.1.2"]}]}`,
			"x | IPv4 | 80 | 1.1.1.1,1.1.1.2 | 60m"},
		{slices, `{` + meta + `},"addressType":"IPv4"}`, "x | IPv4 | <unset> | <unset> | 60m"},
		{core("configmaps"), `{` + meta + `},"data":{"a":"b"},"binaryData":{"c":""}}`, "x | 2 | 60m"},
		{core("secrets"), `{` + meta + `},"type":"Opaque","data":{"a":""}}`, "x | Opaque | 1 | 60m"},
		{core("namespaces"), `{` + meta + `},"status":{"phase":"Terminating"}}`, "x | Terminating | 60m"},
		{apps("deployments"), `{` + meta + `},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"c","image":"i:1"},{"name":"d","image":"j"}]}}},
			"status":{"readyReplicas":2,"updatedReplicas":3,"availableReplicas":1}}`, "x | 2/3 | 3 | 1 | 60m | c,d | i:1,j | a=b"},
		{apps("replicasets"), `{` + meta + `},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"replicas":2,"readyReplicas":1}}`,
			"x | 3 | 2 | 1 | 60m | c | i | a=b"},
		{core("events"), `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","fieldPath":"spec"},"type":"Normal","reason":"Pulled","message":" text\n",
			"source":{"component":"kubelet","host":"n1"},"firstTimestamp":"2026-05-01T11:50:00Z","lastTimestamp":"2026-05-01T11:59:55Z","count":4}`,
			"5s | Normal | Pulled | pod/p | spec | kubelet, n1 | text | 10m | 4 | e"},
		{events, `{"metadata":{"name":"e"},"regarding":{"kind":"Node","name":"n"},"type":"Warning","reason":"R","note":"text","eventTime":"2026-05-01T11:58:00.000000Z",
			"reportingController":"k.io/c","reportingInstance":"i","series":{"count":7,"lastObservedTime":"2026-05-01T11:59:00.000000Z"}}`,
			"60s | Warning | R | node/n |  | k.io/c, i | text | 2m | 7 | e"},
	} {
		require.Equal(t, c.want, rowText(t, table.Lookup(c.resource), c.body))
	}
}

// The one status word that kubectl shows is made of many fields.
func TestPodStatus(t *testing.T) {
	waiting := func(reason string) string { return `{"name":"c","state":{"waiting":{"reason":"` + reason + `"}}}` }
	const running = `{"name":"c","ready":true,"state":{"running":{}}}`
	ended := func(code int, reason string) string {
		return fmt.Sprintf(`{"name":"d","state":{"terminated":{"exitCode":%d,"reason":%q}}}`, code, reason)
	}
	for _, c := range []struct{ what, spec, status, meta, want string }{
		{what: "scheduled", status: `"phase":"Pending"`, want: "0/1 Pending 0"},
		{what: "starting", status: `"phase":"Pending","containerStatuses":[` + waiting("ContainerCreating") + `]`, want: "0/1 ContainerCreating 0"},
		{what: "running", status: `"phase":"Running","containerStatuses":[` + running + `]`, want: "1/1 Running 0"},
		{what: "crashing", status: `"phase":"Running","containerStatuses":[{"name":"c","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},
			"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-05-01T11:59:50Z"}}}]`, want: "0/1 CrashLoopBackOff 3 (10s ago)"},
		{what: "completed", status: `"phase":"Succeeded","containerStatuses":[` + ended(0, "Completed") + `]`, want: "0/1 Completed 0"},
		{what: "failed without a reason", status: `"phase":"Failed","containerStatuses":[` + ended(3, "") + `]`, want: "0/1 ExitCode:3 0"},
		{what: "half completed, not ready", spec: `,{"name":"d"}`, status: `"phase":"Running","containerStatuses":[` + ended(0, "Completed") + `,` + running + `]`, want: "1/2 NotReady 0"},
		{what: "half completed, ready", spec: `,{"name":"d"}`, status: `"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[` + ended(0, "Completed") + `,` + running + `]`, want: "1/2 Running 0"},
		{what: "evicted", status: `"phase":"Failed","reason":"Evicted"`, want: "0/1 Evicted 0"},
		{what: "gated", status: `"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]`, want: "0/1 SchedulingGated 0"},
		{what: "ending", meta: `,"deletionTimestamp":"2026-05-01T11:59:59Z"`, status: `"phase":"Running","containerStatuses":[` + running + `]`, want: "1/1 Terminating 0"},
		{what: "lost", meta: `,"deletionTimestamp":"2026-05-01T11:59:59Z"`, status: `"phase":"Running","reason":"NodeLost"`, want: "0/1 Unknown 0"},
		{what: "first of two init containers", spec: `],"initContainers":[{"name":"i"},{"name":"j"}`, status: `"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"running":{}}},{"name":"j","state":{"waiting":{"reason":"PodInitializing"}}}]`, want: "0/1 Init:0/2 0"},
		{what: "init crash", spec: `],"initContainers":[{"name":"i"}`, status: `"phase":"Pending","initContainerStatuses":[{"name":"i","restartCount":2,"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]`, want: "0/1 Init:Error 2"},
		{what: "a sidecar", spec: `],"initContainers":[{"name":"i","restartPolicy":"Always"}`, status: `"phase":"Running","initContainerStatuses":[{"name":"i","ready":true,"started":true,"restartCount":1,"state":{"running":{}}}],"containerStatuses":[` + running + `]`, want: "2/2 Running 1"},
	} {
		body := `{"metadata":{"name":"p"` + c.meta + `},"spec":{"containers":[{"name":"c"}` + c.spec + `]},"status":{` + c.status + `}}`
		var p corev1.Pod
		require.NoError(t, json.Unmarshal([]byte(body), &p), c.what)
		s := summarize(&p)
		require.Equal(t, c.want, fmt.Sprintf("%d/%d %s %s", s.ready, s.total, s.status, s.restartsCell(noon)), c.what)
	}
}
