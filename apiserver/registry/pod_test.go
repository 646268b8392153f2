package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ND-09: the tag decides whether an image is pulled again.
func TestND09PullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"nginx": "Always", "nginx:latest": "Always", "nginx:1.2": "IfNotPresent",
		"reg.io:5000/nginx": "Always", "reg.io:5000/a/nginx:1": "IfNotPresent", "reg.io:5000/a/nginx:latest": "Always",
		"nginx@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855": "IfNotPresent",
	} {
		c := corev1.Container{Image: image}
		defaultContainer(&c)
		require.Equal(t, want, c.ImagePullPolicy, image)
	}
}

func TestRequestsFollowLimits(t *testing.T) {
	_, obj := created(t, Builtin(Options{}), `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
		"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}}`)
	p := obj.(*corev1.Pod)
	require.Equal(t, p.Spec.Containers[0].Resources.Limits, p.Spec.Containers[0].Resources.Requests)
	require.Equal(t, corev1.PodQOSGuaranteed, p.Status.QOSClass)
}

func TestQOSClass(t *testing.T) {
	for resources, want := range map[string]corev1.PodQOSClass{
		`{}`:                                   corev1.PodQOSBestEffort,
		`{"requests":{"cpu":"1"}}`:             corev1.PodQOSBurstable,
		`{"limits":{"cpu":"1"}}`:               corev1.PodQOSBurstable,
		`{"limits":{"cpu":"1","memory":"1"}}`:  corev1.PodQOSGuaranteed,
		`{"limits":{"ephemeral-storage":"1"}}`: corev1.PodQOSBestEffort,
		`{"limits":{"cpu":"1","memory":"1"},"requests":{"cpu":"500m","memory":"1"}}`: corev1.PodQOSBurstable,
	} {
		var r corev1.ResourceRequirements
		require.NoError(t, json.Unmarshal([]byte(resources), &r))
		require.Equal(t, want, qosClass(&corev1.PodSpec{Containers: []corev1.Container{{Resources: r}}}), resources)
	}
}

func TestWarnings(t *testing.T) {
	table := Builtin(Options{})
	warnings := func(r *Resource, body string) []string {
		return r.Strategy.Warnings(context.Background(), decoded(t, table, r.GroupVersionResource, body), nil)
	}
	const twice = `,"env":[{"name":"A"},{"name":"A"}],"ports":[{"containerPort":80},{"containerPort":80,"protocol":"UDP"},{"containerPort":80}]`
	require.Equal(t, []string{
		`spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`,
		"spec.containers[0].ports[2]: duplicate port definition with spec.containers[0].ports[0]",
	}, warnings(table.Lookup(core("pods")), podWith(twice, "")))
	require.Empty(t, warnings(table.Lookup(core("pods")), podWith("", "")))
	const deployment = `{"metadata":{"name":"a","generation":%d},"spec":{"template":{"spec":{"terminationGracePeriodSeconds":-1}}}}`
	row := table.Lookup(apps("deployments"))
	negative := []string{"spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"}
	require.Equal(t, negative, warnings(row, fmt.Sprintf(deployment, 1)))
	old := decoded(t, table, row.GroupVersionResource, fmt.Sprintf(deployment, 1))
	require.Empty(t, row.Strategy.Warnings(context.Background(), old, old), "nothing new")
	next := decoded(t, table, row.GroupVersionResource, fmt.Sprintf(deployment, 2))
	require.Equal(t, negative, row.Strategy.Warnings(context.Background(), next, old))
}

// TestMistakesInLists: what validation lets pass, and a merge patch or the node agent would not.
func TestMistakesInLists(t *testing.T) {
	table := Builtin(Options{})
	pods := table.Lookup(core("pods"))
	for spec, want := range map[string]string{
		`"imagePullSecrets":[{"name":"a"},{"name":"a"}]`:                                                                 `spec.imagePullSecrets[1].name: duplicate name "a"`,
		`"hostAliases":[{"ip":"1.2.3.4"},{"ip":"1.2.3.4"}]`:                                                              `spec.hostAliases[1].ip: duplicate ip "1.2.3.4"`,
		`"hostAliases":[{"ip":"01.2.3.4"}]`:                                                                              `spec.hostAliases[0].ip: non-standard IP address "01.2.3.4" is invalid: use "1.2.3.4"`,
		`"topologySpreadConstraints":[{"topologyKey":"x"}]`:                                                              "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
		`"nodeSelector":{"beta.kubernetes.io/os":"linux"}`:                                                               `spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`,
		`"volumes":[{"name":"v","projected":{"sources":[{}]}}]`:                                                          `volume "v" (Projected) has no sources provided`,
		`"volumes":[{"name":"v","flocker":{}}]`:                                                                          "spec.volumes[0].flocker: deprecated in v1.22, non-functional in v1.25+",
		`"volumes":[{"name":"v","secret":{"secretName":"s","items":[{"key":"a","path":"p"},{"key":"b","path":"p/q"}]}}]`: `volume "v" (Secret "s"): overlapping paths: "p/q" with "p"`,
		`"containers":[{"name":"a","ports":[{"name":"web","containerPort":1}]},{"name":"b","ports":[{"name":"web","containerPort":2}]}]`: `spec.containers[1].ports[0]: duplicate port name "web" with spec.containers[0].ports[0], ` +
			"services and probes that select ports by name will use spec.containers[0].ports[0]",
	} {
		got := pods.Strategy.Warnings(context.Background(), decoded(t, table, pods.GroupVersionResource, `{"metadata":{"name":"p"},"spec":{`+spec+`}}`), nil)
		require.Equal(t, []string{want}, got, spec)
	}
}

func TestGracePeriod(t *testing.T) {
	on := corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: new(int64(7))}}
	ended := on
	ended.Status.Phase = corev1.PodFailed
	for _, c := range []struct {
		pod   corev1.Pod
		asked *int64
		want  int64
	}{
		{on, nil, 7}, {on, new(int64(0)), 0}, {on, new(int64(20)), 20}, {on, new(int64(-1)), 1},
		{ended, nil, 0}, {corev1.Pod{}, nil, 0}, {corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}, nil, 30},
	} {
		require.Equal(t, c.want, podGracePeriod(&c.pod, c.asked))
	}
}

func subresource(t *testing.T, resource, name string) *Subresource {
	s := Builtin(Options{}).Lookup(core(resource)).Subresource(name)
	require.NotNil(t, s)
	return s
}

func TestBindOnce(t *testing.T) {
	s := subresource(t, "pods", "binding")
	bind := func(p *corev1.Pod, b *corev1.Binding) error { return s.Create(context.Background(), p, b) }
	to := func(node string) *corev1.Binding {
		return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{"k": "v"}}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	require.NoError(t, bind(p, to("a")))
	require.Equal(t, "a", p.Spec.NodeName)
	require.Equal(t, "v", p.Annotations["k"])
	require.True(t, hasCondition(p, corev1.PodScheduled))

	err := bind(p, to("b"))
	require.True(t, apierrors.IsConflict(err))
	require.ErrorContains(t, err, `pod p is already assigned to node "a"`)
	require.Equal(t, "a", p.Spec.NodeName)

	other := to("a")
	other.UID = "v"
	require.True(t, apierrors.IsConflict(bind(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, other)))
	require.True(t, apierrors.IsConflict(bind(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: new(metav1.Now())}}, to("a"))))
	require.True(t, apierrors.IsConflict(bind(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}}}}, to("a"))))
	require.True(t, apierrors.IsBadRequest(bind(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, to(""))))
}

func TestEvictionDeletes(t *testing.T) {
	s := subresource(t, "pods", "eviction")
	require.NoError(t, s.Create(context.Background(), &corev1.Pod{}, &policyv1.Eviction{}))
	grace := &metav1.DeleteOptions{GracePeriodSeconds: new(int64(3))}
	require.Same(t, grace, s.DeleteOptions(&policyv1.Eviction{DeleteOptions: grace}))
}

func TestEphemeralContainersOnly(t *testing.T) {
	s := subresource(t, "pods", "ephemeralcontainers")
	table := Builtin(Options{})
	old := decoded(t, table, core("pods"), podWith("", `,"ephemeralContainers":[{"name":"e","image":"i"}]`)).(*corev1.Pod)
	next := decoded(t, table, core("pods"), `{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"nodeName":"elsewhere","containers":[{"name":"c","image":"j"}],
		"ephemeralContainers":[{"name":"e","image":"i"},{"name":"f","image":"i","targetContainerName":"c"}]}}`).(*corev1.Pod)
	s.Update(context.Background(), next, old)
	require.Equal(t, "i", next.Spec.Containers[0].Image)
	require.Empty(t, next.Spec.NodeName)
	require.Empty(t, next.Labels)
	require.Len(t, next.Spec.EphemeralContainers, 2)
	require.Empty(t, s.Validate(context.Background(), next, old))

	gone := old.DeepCopy()
	gone.Spec.EphemeralContainers = nil
	require.Equal(t, []string{`spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed`}, faultsOf(s.Validate(context.Background(), gone, old)))
	wrong := next.DeepCopy()
	wrong.Spec.EphemeralContainers[1].TargetContainerName = "nope"
	wrong.Spec.EphemeralContainers[1].Ports = []corev1.ContainerPort{{ContainerPort: 1, Protocol: "TCP"}}
	require.Equal(t, []string{
		"spec.ephemeralContainers[1].ports: Forbidden: cannot be set for an Ephemeral Container",
		"spec.ephemeralContainers[1].targetContainerName: Not found",
	}, faultsOf(s.Validate(context.Background(), wrong, old)))
}

func TestScale(t *testing.T) {
	table := Builtin(Options{})
	for _, resource := range []string{"deployments", "replicasets"} {
		obj := decoded(t, table, apps(resource), `{"metadata":{"name":"x","namespace":"n","uid":"u"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}}},"status":{"replicas":1}}`)
		p := table.Lookup(apps(resource)).Subresource("scale").Project
		view, err := p.Get(obj)
		require.NoError(t, err)
		scale := view.(*autoscalingv1.Scale)
		require.Equal(t, autoscalingv1.ScaleStatus{Replicas: 1, Selector: "a=b"}, scale.Status)
		require.EqualValues(t, 2, scale.Spec.Replicas)
		scale.Spec.Replicas = 0 // which protobuf and omitempty cannot tell from unset
		require.NoError(t, p.Set(obj, scale))
		view, err = p.Get(obj)
		require.NoError(t, err)
		require.Zero(t, view.(*autoscalingv1.Scale).Spec.Replicas)
		scale.Spec.Replicas = -1
		require.True(t, apierrors.IsInvalid(p.Set(obj, scale)))
	}
}

// An event looks the same through both of its groups, and comes back unchanged.
func TestEventsRoundTrip(t *testing.T) {
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p"}, Reason: "r", Message: "m",
		Source: corev1.EventSource{Component: "c", Host: "h"}, Count: 3, Type: "Normal", Series: &corev1.EventSeries{Count: 2},
		Action: "a", Related: &corev1.ObjectReference{Name: "q"}, ReportingController: "rc", ReportingInstance: "ri",
	}
	other, err := eventFromCore(e)
	require.NoError(t, err)
	back, err := eventToCore(other)
	require.NoError(t, err)
	require.Equal(t, runtime.Object(e), back)
}

// A namespace stays, Terminating, as long as somebody has to empty it.
func TestNamespaceLifeCycle(t *testing.T) {
	r, obj := created(t, Builtin(Options{}), `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`)
	ns := obj.(*corev1.Namespace)
	require.Equal(t, "n", ns.Labels[corev1.LabelMetadataName])
	require.Equal(t, corev1.NamespaceActive, ns.Status.Phase)
	require.True(t, r.Strategy.KeepOnDelete(ns))
	r.Strategy.PrepareForDelete(ns)
	require.Equal(t, corev1.NamespaceTerminating, ns.Status.Phase)

	plain := ns.DeepCopy()
	plain.Spec.Finalizers = nil
	r.Strategy.PrepareForUpdate(context.Background(), plain, ns)
	require.True(t, r.Strategy.KeepOnDelete(plain), "only finalize takes a finalizer away")
	final := ns.DeepCopy()
	final.Spec.Finalizers = nil
	final.Status.Phase = corev1.NamespaceActive
	r.Subresource("finalize").Update(context.Background(), final, ns)
	require.False(t, r.Strategy.KeepOnDelete(final))
	require.Equal(t, corev1.NamespaceTerminating, final.Status.Phase)
}
