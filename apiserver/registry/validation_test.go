package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decoded is body as the generic path hands it to a row.
func decoded(t *testing.T, table *Table, gvr schema.GroupVersionResource, body string) runtime.Object {
	r := table.Lookup(gvr)
	obj := r.New()
	require.NoError(t, json.Unmarshal([]byte(body), obj))
	if r.Strategy.Default != nil {
		r.Strategy.Default(obj)
	}
	return obj
}

// faultsOf lists faults as "path: Cause: detail", sorted, without the value.
func faultsOf(list field.ErrorList) []string {
	out := []string{}
	for _, e := range list {
		text := e.Field + ": " + e.Type.String()
		if e.Detail != "" {
			text += ": " + strings.SplitN(e.Detail, "\n", 2)[0]
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

// pod makes a pod of one container with the given fields beside name and image.
func podWith(container, spec string) string {
	return `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"` + container + `}]` + spec + `}}`
}

func TestValidate(t *testing.T) {
	const template = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	for _, c := range []struct {
		name     string
		resource schema.GroupVersionResource
		body     string
		want     []string
	}{
		{"a pod without containers", core("pods"), `{"spec":{}}`, []string{"spec.containers: Required value"}},
		{"a container without name and image", core("pods"), `{"spec":{"containers":[{}]}}`, []string{
			"spec.containers[0].image: Required value", "spec.containers[0].name: Required value"}},
		{"two containers of one name", core("pods"), `{"spec":{"containers":[{"name":"c","image":"i"},{"name":"c","image":"i"}]}}`,
			[]string{"spec.containers[1].name: Duplicate value"}},
		{"an init container named as a container", core("pods"), podWith("", `,"initContainers":[{"name":"c","image":"i"}]`),
			[]string{"spec.initContainers[0].name: Duplicate value"}},
		{"enums", core("pods"), podWith(`,"imagePullPolicy":"Sometimes"`, `,"restartPolicy":"x","dnsPolicy":"y"`), []string{
			`spec.containers[0].imagePullPolicy: Unsupported value: supported values: "Always", "IfNotPresent", "Never"`,
			`spec.dnsPolicy: Unsupported value: supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"`,
			`spec.restartPolicy: Unsupported value: supported values: "Always", "OnFailure", "Never"`}},
		{"ports", core("pods"), podWith(`,"ports":[{"name":"a","containerPort":80,"hostPort":8080},{"name":"a","containerPort":70000,"hostPort":8080}]`, ""), []string{
			"spec.containers[0].ports[1].containerPort: Invalid value: must be between 1 and 65535, inclusive",
			"spec.containers[0].ports[1].hostPort: Duplicate value",
			"spec.containers[0].ports[1].name: Duplicate value"}},
		{"environment", core("pods"), podWith(`,"env":[{"name":""},{"name":"A","value":"v","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
			{"name":"B","valueFrom":{}},{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}]`, ""), []string{
			"spec.containers[0].env[0].name: Required value",
			"spec.containers[0].env[1].valueFrom: Invalid value: may not be specified when `value` is not empty",
			"spec.containers[0].env[2].valueFrom: Invalid value: must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
			"spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Invalid value: error converting fieldPath: field label not supported: spec.x"}},
		{"fields that files show", core("pods"), podWith(`,"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels"}}}]`, ""), []string{
			`spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`}},
		{"labels in the environment", core("pods"), podWith(`,"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['x/y']"}}}]`, ""), []string{}},
		{"mounts", core("pods"), podWith(`,"volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"nope","mountPath":"/a","subPath":"../x"}]`, `,"volumes":[{"name":"v"}]`), []string{
			"spec.containers[0].volumeMounts.subPath: Invalid value: must not contain '..'",
			"spec.containers[0].volumeMounts[1].mountPath: Invalid value: must be unique",
			"spec.containers[0].volumeMounts[1].name: Not found"}},
		{"volumes", core("pods"), podWith("", `,"volumes":[{"name":"v","secret":{}},{"name":"v","emptyDir":{},"nfs":{"path":"/a"}},{"name":"w","configMap":{"name":"x","defaultMode":512}},
			{"name":"x","hostPath":{"path":"/a/../b"}},{"name":"y"},{"name":"y"}]`), []string{
			"spec.volumes[0].secret.secretName: Required value",
			"spec.volumes[1].nfs: Forbidden: may not specify more than 1 volume type",
			"spec.volumes[2].configMap.defaultMode: Invalid value: must be a number between 0 and 0777 (octal), both inclusive",
			"spec.volumes[3].hostPath.path: Invalid value: must not contain '..'",
			"spec.volumes[5].name: Duplicate value"}},
		{"modes", core("pods"), podWith("", `,"volumes":[{"name":"w","configMap":{"name":"x","defaultMode":512}}]`), []string{
			"spec.volumes[0].configMap.defaultMode: Invalid value: must be a number between 0 and 0777 (octal), both inclusive"}},
		{"resources", core("pods"), podWith(`,"resources":{"limits":{"cpu":"1","memory":"-1"},"requests":{"cpu":"2","x.io/y":"1","bogus":"1"}}`, ""), []string{
			"spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
			"spec.containers[0].resources.limits[memory]: Invalid value: must be greater than or equal to 0",
			"spec.containers[0].resources.requests: Invalid value: must be less than or equal to cpu limit of 1",
			"spec.containers[0].resources.requests[bogus]: Invalid value: must be a standard resource for containers",
			"spec.containers[0].resources.requests[bogus]: Invalid value: must be a standard resource type or fully qualified",
			"spec.containers[0].resources.requests[memory]: Invalid value: must be greater than or equal to 0"}},
		{"probes", core("pods"), podWith(`,"livenessProbe":{"successThreshold":2},"readinessProbe":{"exec":{},"tcpSocket":{"port":"x_y"}},"lifecycle":{"preStop":{"sleep":{"seconds":60}}}`, ""), []string{
			"spec.containers[0].lifecycle.preStop.sleep: Invalid value: must be non-negative and less than terminationGracePeriodSeconds (30)",
			"spec.containers[0].livenessProbe.successThreshold: Invalid value: must be 1",
			"spec.containers[0].livenessProbe: Required value: must specify a handler type",
			"spec.containers[0].readinessProbe.exec.command: Required value",
			"spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"}},
		{"init containers have no probes", core("pods"), podWith("", `,"initContainers":[{"name":"d","image":"i","readinessProbe":{"tcpSocket":{"port":1}}}]`),
			[]string{"spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"}},
		{"sidecars have", core("pods"), podWith("", `,"initContainers":[{"name":"d","image":"i","restartPolicy":"Always","readinessProbe":{"tcpSocket":{"port":1}}}]`), []string{}},
		{"tolerations", core("pods"), podWith("", `,"tolerations":[{"operator":"Equal"},{"key":"k","operator":"Exists","value":"v","effect":"Never"}]`), []string{
			`spec.tolerations[0].operator: Invalid value: operator must be Exists when ` + "`key`" + ` is empty, which means "match all values and all keys"`,
			`spec.tolerations[1].effect: Unsupported value: supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			"spec.tolerations[1].operator: Invalid value: value must be empty when `operator` is 'Exists'"}},
		{"node affinity", core("pods"), podWith("", `,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In"},{"key":"b","operator":"Near"}]}]},
			"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":101,"preference":{"matchFields":[{"key":"spec.x","operator":"In","values":["n"]}]}}]}}`), []string{
			"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key: Invalid value: not a valid field selector key",
			"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: must be in the range 1-100",
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].operator: Invalid value: not a valid selector operator"}},
		{"pod affinity", core("pods"), podWith("", `,"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"k","labelSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}}]}}`), []string{
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"}},
		{"security", core("pods"), podWith(`,"securityContext":{"runAsUser":-1,"privileged":true,"allowPrivilegeEscalation":false}`, `,"hostPID":true,"shareProcessNamespace":true,"securityContext":{"seccompProfile":{"type":"Localhost"}}`), []string{
			"spec.containers[0].securityContext.runAsUser: Invalid value: must be between 0 and 2147483647, inclusive",
			"spec.containers[0].securityContext: Invalid value: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
			"spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
			"spec.shareProcessNamespace: Invalid value: ShareProcessNamespace and HostPID cannot both be enabled"}},
		{"no DNS at all", core("pods"), podWith("", `,"dnsPolicy":"None"`),
			[]string{"spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"}},
		{"ephemeral containers come later", core("pods"), podWith("", `,"ephemeralContainers":[{"name":"e","image":"i"}]`),
			[]string{"spec.ephemeralContainers: Forbidden: cannot be set on create"}},
		{"host network ports", core("pods"), podWith(`,"ports":[{"containerPort":80,"hostPort":81}]`, `,"hostNetwork":true`),
			[]string{"spec.containers[0].ports[0].hostPort: Invalid value: must match `containerPort` when `hostNetwork` is true"}},

		{"a deployment without a selector", apps("deployments"), `{"spec":{` + template + `}}`, []string{
			"spec.selector: Required value", "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`"}},
		{"a selector of other pods", apps("deployments"), `{"spec":{"selector":{"matchLabels":{"a":"c"}},` + template + `}}`,
			[]string{"spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`"}},
		{"an empty selector", apps("replicasets"), `{"spec":{"selector":{},` + template + `}}`,
			[]string{"spec.selector: Invalid value: empty selector is invalid for deployment"}},
		{"numbers", apps("deployments"), `{"spec":{"replicas":-1,"minReadySeconds":700,"selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}},` + template + `}}`, []string{
			"spec.progressDeadlineSeconds: Invalid value: must be greater than minReadySeconds",
			"spec.replicas: Invalid value: must be greater than or equal to 0",
			"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: may not be 0 when `maxSurge` is 0"}},
		{"recreate does not roll", apps("deployments"), `{"spec":{"selector":{"matchLabels":{"a":"b"}},"strategy":{"type":"Recreate","rollingUpdate":{}},` + template + `}}`,
			[]string{"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"}},

		{"a service without ports", core("services"), `{"spec":{}}`, []string{"spec.ports: Required value"}},
		{"service ports", core("services"), `{"spec":{"ports":[{"port":80},{"name":"a","port":80,"nodePort":30000},{"name":"a","port":0}]}}`, []string{
			"spec.ports[0].name: Required value",
			"spec.ports[1].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
			"spec.ports[1]: Duplicate value",
			"spec.ports[2].name: Duplicate value",
			"spec.ports[2].port: Invalid value: must be between 1 and 65535, inclusive",
			"spec.ports[2].targetPort: Invalid value: must be between 1 and 65535, inclusive"}},
		{"one family only", core("services"), `{"spec":{"ports":[{"port":80}],"ipFamilies":["IPv6"],"ipFamilyPolicy":"RequireDualStack"}}`, []string{
			"spec.ipFamilies[0]: Invalid value: not configured on this cluster",
			"spec.ipFamilyPolicy: Invalid value: this cluster is not configured for dual-stack services"}},
		{"an external name", core("services"), `{"spec":{"type":"ExternalName","externalName":"Bad_Name"}}`,
			[]string{"spec.externalName: Invalid value: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},

		{"config map keys", core("configmaps"), `{"data":{"a/b":"","c":""},"binaryData":{"c":""}}`, []string{
			"data[a/b]: Invalid value: a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
			"data[c]: Invalid value: duplicate of key present in binaryData"}},
		{"a big config map", core("configmaps"), `{"data":{"a":"` + strings.Repeat("x", 1<<20+1) + `"}}`, []string{"[]: Too long: may not be more than 1048576 bytes"}},
		{"a TLS secret", core("secrets"), `{"type":"kubernetes.io/tls","data":{"tls.crt":""}}`, []string{"data[tls.key]: Required value"}},
		{"taints", core("nodes"), `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"x","effect":"NoSchedule"}]}}`,
			[]string{"metadata.taints[1]: Duplicate value: taints must be unique by key and effect pair"}},
		{"an endpoint on the node itself", core("endpoints"), `{"subsets":[{"addresses":[{"ip":"127.0.0.1"}],"ports":[{"port":80}]}]}`,
			[]string{"subsets[0].addresses[0].ip: Invalid value: may not be in the loopback range (127.0.0.0/8, ::1/128)"}},
		{"a slice of the other family", schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
			`{"addressType":"IPv6","endpoints":[{"addresses":["10.0.0.1"]},{}],"ports":[{},{"port":1}]}`, []string{
				"endpoints[0].addresses: Invalid value: must be an IPv6 address",
				"endpoints[1].addresses: Required value",
				"ports[1].name: Duplicate value"}},
		{"a lease", schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, `{"spec":{"leaseDurationSeconds":0}}`,
			[]string{"spec.leaseDurationSeconds: Invalid value: must be greater than 0"}},
		{"an event of another namespace", core("events"), `{"metadata":{"namespace":"a"},"involvedObject":{"namespace":"b"}}`,
			[]string{"involvedObject.namespace: Invalid value: does not match event.namespace"}},
		{"a new event", schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}, `{"metadata":{"namespace":"a"},"regarding":{"namespace":"a"},"deprecatedCount":3}`, []string{
			"count: Invalid value: needs to be unset", "eventTime: Required value", "type: Invalid value: has invalid value: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := Builtin(Options{})
			r := table.Lookup(c.resource)
			obj := decoded(t, table, c.resource, c.body)
			if r.Strategy.PrepareForCreate != nil && c.resource.Resource == "services" {
				r.Strategy.PrepareForCreate(context.Background(), obj)
			}
			require.Equal(t, c.want, faultsOf(r.Strategy.Validate(context.Background(), obj)))
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	deployment := func(label string) string {
		return `{"spec":{"selector":{"matchLabels":{"a":"` + label + `"}},"template":{"metadata":{"labels":{"a":"` + label + `"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	}
	for _, c := range []struct {
		name     string
		resource schema.GroupVersionResource
		old, new string
		want     []string
	}{
		{"another image", core("pods"), podWith("", ""), `{"spec":{"containers":[{"name":"c","image":"j","imagePullPolicy":"Always"}]}}`, []string{}},
		{"more tolerations", core("pods"), podWith("", `,"tolerations":[{"key":"a","operator":"Exists"}]`), podWith("", `,"tolerations":[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}]`), []string{}},
		{"fewer tolerations", core("pods"), podWith("", `,"tolerations":[{"key":"a","operator":"Exists"}]`), podWith("", ""),
			[]string{"spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"}},
		{"one more container", core("pods"), podWith("", ""), `{"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}}`,
			[]string{"spec.containers: Forbidden: pod updates may not add or remove containers"}},
		{"another command", core("pods"), podWith("", ""), podWith(`,"command":["x"]`, ""), []string{"spec: Forbidden: pod updates may not change fields other than " + changeable}},
		{"a longer deadline", core("pods"), podWith("", `,"activeDeadlineSeconds":5`), podWith("", `,"activeDeadlineSeconds":6`),
			[]string{"spec.activeDeadlineSeconds: Invalid value: must be less than or equal to previous value"}},
		{"a shorter deadline", core("pods"), podWith("", `,"activeDeadlineSeconds":5`), podWith("", `,"activeDeadlineSeconds":4`), []string{}},
		{"a new gate", core("pods"), podWith("", ""), podWith("", `,"schedulingGates":[{"name":"a.io/g"}]`),
			[]string{"spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a.io/g'"}},
		{"a deployment's selector", apps("deployments"), deployment("x"), deployment("y"), []string{"spec.selector: Invalid value: field is immutable"}},
		{"a service's address", core("services"), `{"spec":{"clusterIP":"10.96.0.5","clusterIPs":["10.96.0.5"],"ports":[{"port":80}]}}`,
			`{"spec":{"clusterIP":"10.96.0.6","clusterIPs":["10.96.0.6"],"ports":[{"port":80}]}}`, []string{"spec.clusterIPs[0]: Invalid value: may not change once set"}},
		{"a secret's type", core("secrets"), `{"type":"a"}`, `{"type":"b"}`, []string{"type: Invalid value: field is immutable"}},
		{"an immutable secret", core("secrets"), `{"immutable":true,"data":{"a":"YQ=="}}`, `{"data":{"a":"Yg=="}}`, []string{
			"data: Forbidden: field is immutable when `immutable` is set", "immutable: Forbidden: field is immutable when `immutable` is set"}},
		{"an immutable config map", core("configmaps"), `{"immutable":true,"data":{"a":"b"}}`, `{"immutable":true}`,
			[]string{"data: Forbidden: field is immutable when `immutable` is set"}},
		{"a node's pod CIDR", core("nodes"), `{"spec":{"podCIDRs":["10.1.0.0/24"]}}`, `{"spec":{"podCIDRs":["10.2.0.0/24"]}}`,
			[]string{`spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := Builtin(Options{})
			old, next := decoded(t, table, c.resource, c.old), decoded(t, table, c.resource, c.new)
			require.Equal(t, c.want, faultsOf(table.Lookup(c.resource).Strategy.ValidateUpdate(context.Background(), next, old)))
		})
	}
}
