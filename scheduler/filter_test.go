package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func container(cpu string) corev1.Container {
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
}

func testPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{SchedulerName: Name, Containers: []corev1.Container{{Name: "c"}}},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func asks(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{container(cpu)} }
}

func testNode(name string, change ...func(*corev1.Node)) *corev1.Node {
	allocatable := quantities("4", "8Gi")
	allocatable[corev1.ResourcePods] = resource.MustParse("3")
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: allocatable},
	}
	for _, c := range change {
		c(node)
	}
	return node
}

// onNode is the cache's view of a node with pods on it.
func onNode(node *corev1.Node, pods ...*corev1.Pod) *nodeInfo {
	c := newCache()
	c.setNode(node)
	for _, pod := range pods {
		c.setPod(pod, node.Name)
	}
	return c.nodes[node.Name]
}

func TestFilters(t *testing.T) {
	port := func(ip string, n int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostIP: ip, HostPort: n, ContainerPort: n}}
		}
	}
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: effect}} }
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		node *nodeInfo
		want []string
	}{
		"fits":                   {testPod("p", asks("4")), onNode(testNode("n")), nil},
		"cordoned":               {testPod("p"), onNode(testNode("n", cordoned)), []string{"node(s) were unschedulable"}},
		"cordoned, tolerated":    {testPod("p", tolerant), onNode(testNode("n", cordoned)), nil},
		"taint":                  {testPod("p"), onNode(testNode("n", taint(corev1.TaintEffectNoSchedule))), []string{"node(s) had untolerated taint {gpu: yes}"}},
		"taint, tolerated":       {testPod("p", tolerant), onNode(testNode("n", taint(corev1.TaintEffectNoExecute))), nil},
		"soft taint":             {testPod("p"), onNode(testNode("n", taint(corev1.TaintEffectPreferNoSchedule))), nil},
		"node selector":          {testPod("p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), onNode(testNode("n")), []string{"node(s) didn't match Pod's node affinity/selector"}},
		"port taken":             {testPod("p", port("", 80)), onNode(testNode("n"), testPod("q", port("127.0.0.1", 80))), []string{"node(s) didn't have free ports for the requested pod ports"}},
		"port on other address":  {testPod("p", port("127.0.0.2", 80)), onNode(testNode("n"), testPod("q", port("127.0.0.1", 80))), nil},
		"too many and too large": {testPod("p", asks("2")), onNode(testNode("n"), testPod("a", asks("3")), testPod("b"), testPod("c")), []string{"Insufficient cpu", "Too many pods"}},
		"resource that nobody has": {testPod("p", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"x.io/gpu": resource.MustParse("1")}
		}), onNode(testNode("n")), []string{"Insufficient x.io/gpu"}},
		"asks for nothing, all full": {testPod("p"), onNode(testNode("n"), testPod("a", asks("4"))), nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, objections(newPodInfo(tc.pod), tc.node)) })
	}
}

// CT-07: max(init, sum), with the sidecars that run by then, plus overhead.
func TestEffectiveRequest(t *testing.T) {
	sidecar := container("1")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	cpu := func(p *corev1.Pod) int64 { return podRequest(p)[corev1.ResourceCPU] }
	require.EqualValues(t, 3000, cpu(testPod("init larger", asks("100m"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{container("3")} })))
	require.EqualValues(t, 1100, cpu(testPod("sidecar", asks("100m"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar} })))
	require.EqualValues(t, 4000, cpu(testPod("sidecar before init", asks("100m"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar, container("3")} })))
	require.EqualValues(t, 350, cpu(testPod("overhead", asks("100m"), func(p *corev1.Pod) { p.Spec.Overhead = quantities("250m", "0") })))
}

// CT-06: a pod counts from the decision until it has ended or is gone.
func TestCacheCounts(t *testing.T) {
	c := newCache()
	c.setNode(testNode("n"))
	pod := testPod("p", asks("3"))
	c.setPod(pod, "n") // assumed
	require.EqualValues(t, 3000, c.nodes["n"].used[corev1.ResourceCPU])
	c.setPod(pod, "n") // confirmed
	require.EqualValues(t, 3000, c.nodes["n"].used[corev1.ResourceCPU])
	c.setPod(pod, "m") // it turned out to be elsewhere
	require.Zero(t, c.nodes["n"].used[corev1.ResourceCPU])
	c.removeNode("n")
	require.NotContains(t, c.nodes, "n")
	require.True(t, c.removePod("p"))
	require.False(t, c.removePod("p"))
	require.Empty(t, c.nodes)

	c.setPod(pod, "late") // the informer of pods may be ahead of the one of nodes
	c.view(func(nodes []*nodeInfo) { require.Empty(t, nodes) })
	c.setNode(testNode("late"))
	c.view(func(nodes []*nodeInfo) { require.EqualValues(t, 3000, nodes[0].used[corev1.ResourceCPU]) })
}

func TestMessage(t *testing.T) {
	none := &unschedulable{}
	require.Equal(t, "no nodes available to schedule pods", none.String())
	why := &unschedulable{nodes: 3, count: map[string]int{}}
	why.add([]string{"Insufficient cpu"})
	why.add([]string{"Insufficient cpu", "Too many pods"})
	why.add([]string{"node(s) were unschedulable"})
	require.Equal(t, "0/3 nodes are available: 1 Too many pods, 1 node(s) were unschedulable, 2 Insufficient cpu.", why.String())
}

func TestScores(t *testing.T) {
	nobody := func(*corev1.Pod) bool { return false }
	pick := func(pod *corev1.Pod, like labelled, nodes ...*nodeInfo) string {
		return best(newPodInfo(pod), nodes, like).name
	}
	require.Equal(t, "b", pick(testPod("p"), nobody, onNode(testNode("a"), testPod("x", asks("3"))), onNode(testNode("b"))), "the emptier one")
	require.Equal(t, "b", pick(testPod("p"), nobody, onNode(testNode("a"), testPod("x")), onNode(testNode("b"))), "pods that ask for nothing count as something")

	soft := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	require.Equal(t, "b", pick(testPod("p"), nobody, onNode(testNode("a", soft)), onNode(testNode("b"))))

	prefers := testPod("p", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}},
		}}}}
	})
	require.Equal(t, "b", pick(prefers, nobody, onNode(testNode("a")), onNode(testNode("b"))))

	owned := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{UID: "rs", Controller: ptr.To(true)}}
	}
	served := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }
	service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "x"}}}
	for name, change := range map[string]func(*corev1.Pod){"owner": owned, "service": served} {
		pod := testPod("p", change)
		require.Equal(t, "b", pick(pod, sameApplication(pod, []*corev1.Service{service}), onNode(testNode("a"), testPod("sibling", change)), onNode(testNode("b"), testPod("stranger"))), name)
	}
}

func TestInterpod(t *testing.T) {
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }
	terms := []corev1.PodAffinityTerm{{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}
	near := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
	apart := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
	zone := func(z string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels["zone"] = z } }
	fits := func(pod *corev1.Pod, nodes ...*nodeInfo) (names []string) {
		info := newPodInfo(pod)
		x := newInterpod(info, nodes, func(string) labels.Set { return nil })
		for _, node := range nodes {
			if x.objections(info, node) == nil {
				names = append(names, node.name)
			}
		}
		return names
	}
	a1, a2, b := onNode(testNode("a1", zone("a")), testPod("x", labelled)), onNode(testNode("a2", zone("a"))), onNode(testNode("b", zone("b")))
	require.Equal(t, []string{"a1", "a2"}, fits(testPod("p", near), a1, a2, b))
	require.Equal(t, []string{"b"}, fits(testPod("p", apart), a1, a2, b))
	require.Equal(t, []string{"a2", "b"}, fits(testPod("p", near, labelled), a2, b), "the first of a group that it belongs to")
	require.Empty(t, fits(testPod("p", near), a2, b))
	guarded := onNode(testNode("b", zone("b")), testPod("guard", apart))
	require.Equal(t, []string{"a2"}, fits(testPod("p", labelled), a2, guarded), "the running pod does not want it")
	other := testPod("p", apart, func(p *corev1.Pod) { p.Namespace = "elsewhere" })
	require.Equal(t, []string{"a1", "a2", "b"}, fits(other, a1, a2, b), "terms are about the pod's own namespace")
}
