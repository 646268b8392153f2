package registry

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func in(group, resource string) schema.GroupVersionResource {
	version := "v1"
	if group == "autoscaling" {
		version = "v2"
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// The kinds beside those of issue 2: what they refuse.
func TestValidateOtherKinds(t *testing.T) {
	const (
		template = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
		once     = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`
		picked   = `"selector":{"matchLabels":{"a":"b"}}`
		network  = "networking.k8s.io"
	)
	for _, c := range []struct {
		name     string
		resource schema.GroupVersionResource
		body     string
		want     []string
	}{
		{"a stateful set", in("apps", "statefulsets"), `{"spec":{"podManagementPolicy":"x",` + picked + `,` + template + `}}`,
			[]string{"spec.podManagementPolicy: Invalid value: must be 'OrderedReady' or 'Parallel'"}},
		{"a daemon set that cannot roll", in("apps", "daemonsets"), `{"spec":{` + picked + `,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}},` + template + `}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"}},
		{"a daemon set that rolls two ways", in("apps", "daemonsets"), `{"spec":{` + picked + `,"updateStrategy":{"rollingUpdate":{"maxSurge":1}},` + template + `}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: may not be set when maxUnavailable is non-zero"}},
		{"a replication controller", core("replicationcontrollers"), `{"spec":{"selector":{"a":"c"},` + template + `}}`,
			[]string{"spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`"}},
		{"a job that restarts for ever", in("batch", "jobs"), `{"spec":{"manualSelector":true,"parallelism":-1,` + picked + `,` + template + `}}`, []string{
			"spec.parallelism: Invalid value: must be greater than or equal to 0",
			`spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`}},
		{"an indexed job without a number", in("batch", "jobs"), `{"spec":{"manualSelector":true,"parallelism":2,"completionMode":"Indexed",` + picked + `,` + once + `}}`,
			[]string{"spec.completions: Required value: when completion mode is Indexed"}},
		{"a cron job", in("batch", "cronjobs"), `{"spec":{"concurrencyPolicy":"x","jobTemplate":{"spec":{` + once + `}}}}`, []string{
			`spec.concurrencyPolicy: Unsupported value: supported values: "Allow", "Forbid", "Replace"`, "spec.schedule: Required value"}},
		{"an autoscaler", in("autoscaling", "horizontalpodautoscalers"), `{"spec":{"minReplicas":3,"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment"}}}`, []string{
			"spec.maxReplicas: Invalid value: must be greater than or equal to `minReplicas`",
			"spec.scaleTargetRef.apiVersion: Invalid value: apiVersion must specify API group", "spec.scaleTargetRef.name: Required value"}},
		{"an ingress to nowhere", in(network, "ingresses"), `{"spec":{}}`, []string{"spec: Invalid value: either `defaultBackend` or `rules` must be specified"}},
		{"ingress paths", in(network, "ingresses"), `{"spec":{"rules":[{"http":{"paths":[{"path":"x","pathType":"Prefix","backend":{"service":{"name":"s"}}},{"path":"/"}]}}]}}`, []string{
			"spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
			"spec.rules[0].http.paths[0].path: Invalid value: must be an absolute path",
			"spec.rules[0].http.paths[1].pathType: Required value: pathType must be specified"}},
		{"a network policy", in(network, "networkpolicies"), `{"spec":{"ingress":[{"from":[{},{"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/9"]}}],"ports":[{"port":80,"endPort":70}]}]}}`, []string{
			"spec.ingress[0].from[0]: Required value: must specify a peer",
			"spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: must be a strict subset of `cidr`",
			"spec.ingress[0].ports[0].endPort: Invalid value: must be greater than or equal to `port`"}},
		{"a disruption budget", in("policy", "poddisruptionbudgets"), `{"spec":{"minAvailable":1,"maxUnavailable":"120%"}}`, []string{
			"spec.maxUnavailable: Invalid value: must not be greater than 100%",
			"spec: Invalid value: minAvailable and maxUnavailable cannot be both set"}},
		{"a role", in("rbac.authorization.k8s.io", "roles"), `{"rules":[{"verbs":["get"]},{"nonResourceURLs":["/x"]}]}`, []string{
			"rules[0].apiGroups: Required value: resource rules must supply at least one api group",
			"rules[0].resources: Required value: resource rules must supply at least one resource",
			"rules[1].nonResourceURLs: Invalid value: namespaced rules cannot apply to non-resource URLs",
			"rules[1].verbs: Required value"}},
		{"a binding", in("rbac.authorization.k8s.io", "clusterrolebindings"), `{"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"ServiceAccount","name":"s"}]}`, []string{
			`roleRef.kind: Unsupported value: supported values: "ClusterRole"`, "subjects[0].namespace: Required value"}},
		{"a claim", core("persistentvolumeclaims"), `{"spec":{"accessModes":["ReadWriteOnce","ReadWriteOncePod"]}}`, []string{
			"spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes", "spec.resources[storage]: Required value"}},
		{"a volume", core("persistentvolumes"), `{"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"0"}}}`, []string{
			"spec.capacity[storage]: Invalid value: must be greater than zero", "spec: Required value: must specify a volume type"}},
		{"a storage class", in("storage.k8s.io", "storageclasses"), `{"volumeBindingMode":"x"}`, []string{
			"provisioner: Required value", `volumeBindingMode: Unsupported value: supported values: "Immediate", "WaitForFirstConsumer"`}},
		{"a priority of the system", in("scheduling.k8s.io", "priorityclasses"), `{"metadata":{"name":"x"},"value":1000000001}`,
			[]string{"value: Forbidden: maximum allowed value of a user defined priority is 1000000000"}},
		{"a runtime class", in("node.k8s.io", "runtimeclasses"), `{"metadata":{"name":"x"}}`, []string{"handler: Required value"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := Builtin(Options{})
			obj := decoded(t, table, c.resource, c.body)
			require.Equal(t, c.want, faultsOf(table.Lookup(c.resource).Strategy.Validate(context.Background(), obj)))
		})
	}
}

func TestRowsOfOtherKinds(t *testing.T) {
	const meta = `"metadata":{"name":"x","creationTimestamp":"2026-05-01T11:00:00Z"}`
	const template = `"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}`
	table := Builtin(Options{})
	for _, c := range []struct {
		resource   schema.GroupVersionResource
		body, want string
	}{
		{in("apps", "statefulsets"), `{` + meta + `,"spec":{"replicas":2,` + template + `},"status":{"readyReplicas":1}}`, "x | 1/2 | 60m | c | i"},
		{in("apps", "daemonsets"), `{` + meta + `,"spec":{` + template + `},"status":{"desiredNumberScheduled":3,"numberReady":1}}`, "x | 3 | 0 | 1 | 0 | 0 | <none> | 60m | c | i | <none>"},
		{in("batch", "jobs"), `{` + meta + `,"spec":{"completions":3,` + template + `},"status":{"succeeded":1,"startTime":"2026-05-01T11:59:00Z"}}`, "x | Running | 1/3 | 60s | 60m | c | i | <none>"},
		{in("batch", "jobs"), `{` + meta + `,"spec":{"parallelism":2,` + template + `},"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, "x | Complete | 0/1 of 2 |  | 60m | c | i | <none>"},
		{in("batch", "cronjobs"), `{` + meta + `,"spec":{"schedule":"@daily","suspend":true},"status":{"lastScheduleTime":"2026-05-01T11:59:00Z"}}`, "x | @daily | <none> | True | 0 | 60s | 60m |  |  | <none>"},
		{in("autoscaling", "horizontalpodautoscalers"), `{` + meta + `,"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}}]},
			"status":{"currentMetrics":[{"type":"Resource","resource":{"current":{"averageUtilization":12}}}]}}`, "x | Deployment/d | cpu: 12%/80% | <unset> | 3 | 0 | 60m"},
		{core("persistentvolumeclaims"), `{` + meta + `,"spec":{"volumeName":"v","volumeMode":"Filesystem","storageClassName":"s"},"status":{"phase":"Bound","capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]}}`,
			"x | Bound | v | 1Gi | RWO | s | <unset> | 60m | Filesystem"},
		{core("persistentvolumes"), `{` + meta + `,"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteMany","ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"n","name":"c"}},"status":{"phase":"Bound"}}`,
			"x | 1Gi | RWO,RWX | Retain | Bound | n/c |  | <unset> |  | 60m | <unset>"},
		{in("networking.k8s.io", "ingresses"), `{` + meta + `,"spec":{"rules":[{"host":"a.b"},{}],"tls":[{}]},"status":{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"}]}}}`, "x | <none> | a.b | 1.1.1.1 | 80, 443 | 60m"},
		{in("policy", "poddisruptionbudgets"), `{` + meta + `,"spec":{"maxUnavailable":"10%"},"status":{"disruptionsAllowed":2}}`, "x | N/A | 10% | 2 | 60m"},
		{core("resourcequotas"), `{` + meta + `,"status":{"hard":{"limits.cpu":"2","pods":"5"},"used":{"pods":"1"}}}`, "x | pods: 1/5 | limits.cpu: 0/2 | 60m"},
		{in("rbac.authorization.k8s.io", "rolebindings"), `{` + meta + `,"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"ServiceAccount","namespace":"n","name":"s"}]}`, "x | Role/r | 60m | u |  | n/s"},
		{in("storage.k8s.io", "storageclasses"), `{` + meta + `,"provisioner":"p"}`, "x | p | Delete | Immediate | false | 60m"},
		{in("apps", "controllerrevisions"), `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","controller":true}]},"revision":2}`, "x | daemonset.apps/d | 2 | <unknown>"},
	} {
		require.Equal(t, c.want, rowText(t, table.Lookup(c.resource), c.body))
	}
}

// A DaemonSet counts its templates, whatever the client sends.
func TestTemplateGeneration(t *testing.T) {
	table := Builtin(Options{})
	r := table.Lookup(in("apps", "daemonsets"))
	const body = `{"metadata":{"name":"d","annotations":{"deprecated.daemonset.template.generation":"7"}},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	old := decoded(t, table, r.GroupVersionResource, body).(*appsv1.DaemonSet)
	r.Strategy.PrepareForCreate(context.Background(), old)
	require.Equal(t, "1", old.Annotations[appsv1.DeprecatedTemplateGeneration])

	same := decoded(t, table, r.GroupVersionResource, body).(*appsv1.DaemonSet)
	r.Strategy.PrepareForUpdate(context.Background(), same, old)
	require.Equal(t, "1", same.Annotations[appsv1.DeprecatedTemplateGeneration])
	same.Spec.Template.Spec.Containers[0].Image = "j"
	r.Strategy.PrepareForUpdate(context.Background(), same, old)
	require.Equal(t, "2", same.Annotations[appsv1.DeprecatedTemplateGeneration])
}

// What a claim may change once it exists.
func TestClaimUpdates(t *testing.T) {
	old := &corev1.PersistentVolumeClaim{}
	require.NoError(t, json.Unmarshal([]byte(`{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}}}}`), old))
	bound := old.DeepCopy()
	bound.Spec.VolumeName = "v"
	require.Empty(t, validateClaimUpdate(bound, old))
	bigger := old.DeepCopy()
	bigger.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
	require.NotEmpty(t, validateClaimUpdate(bigger, old), "only a bound claim grows")
	bound.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}}
	for body, want := range map[string][]string{
		`{"spec":{"volumeName":"v","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"3Gi"}}}}`: {},
		`{"spec":{"volumeName":"v","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`: {
			"spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"},
		`{"spec":{"volumeName":"w","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}}}}`: {
			"spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"},
	} {
		next := &corev1.PersistentVolumeClaim{}
		require.NoError(t, json.Unmarshal([]byte(body), next))
		next.Status = bound.Status
		require.Equal(t, want, faultsOf(validateClaimUpdate(next, bound)))
	}
}
