package nodeagent_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/internal/testcluster"
	"kontiki/nodeagent"
	"kontiki/nodeagent/simulated"
)

// patience is how long a test waits for something that takes milliseconds on an idle machine.
const patience = time.Minute

// node is a simulated node under test, against a real API server.
type node struct {
	t       *testing.T
	cluster *testcluster.Cluster
	client  kubernetes.Interface
	dir     string
	rest    *rest.Config // the agent's
	stop    func()
	runtime *simulated.Runtime

	labels   map[string]string // of the next start
	noLabels []string
}

func startNode(t *testing.T) *node {
	n := &node{t: t, cluster: testcluster.Start(t), dir: t.TempDir()}
	n.client, n.rest = n.cluster.Admin(), n.cluster.NodeREST("n1")
	n.start()
	return n
}

// start starts the runtime and the agent; stop, then start is a restart of the process.
func (n *node) start() {
	n.t.Helper()
	runtime, err := simulated.New(simulated.Config{StateFile: filepath.Join(n.dir, "simulated.json"), Log: n.cluster.Log})
	require.NoError(n.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(n.t, err)
	_, _, err = n.cluster.PKI.Node("n1", []net.IP{net.IPv4(127, 0, 0, 1)})
	require.NoError(n.t, err)
	agent, err := nodeagent.New(nodeagent.Config{
		NodeName: "n1", NodeIPs: []string{"127.0.0.1"}, DataDir: n.dir, REST: n.rest, Runtime: runtime.Conn(),
		ServingTLS: n.cluster.PKI.AgentServing("n1"), Listen: listener, NoMounts: true, Log: n.cluster.Log,
		Labels: n.labels, NoLabels: n.noLabels,
	})
	require.NoError(n.t, err)
	stop := n.cluster.Go("agent", agent.Run)
	n.runtime = runtime
	n.stop = func() { stop(); require.NoError(n.t, runtime.Close()) }
	n.t.Cleanup(func() { n.stop() })
}

// pod makes a pod that is bound to the node.
func (n *node) pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	n.t.Helper()
	grace := int64(2)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: "n1", TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken: new(bool),
			Containers:                   []corev1.Container{{Name: "main", Image: "example.com/app:1"}}},
	}
	if change != nil {
		change(pod)
	}
	made, err := n.client.CoreV1().Pods("default").Create(n.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(n.t, err)
	return made
}

// await polls the pod until ok likes it.
func (n *node) await(name, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	n.t.Helper()
	var last *corev1.Pod
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		pod, err := n.client.CoreV1().Pods("default").Get(n.t.Context(), name, metav1.GetOptions{})
		require.NoError(n.t, err)
		if last = pod; ok(pod) {
			return pod
		}
	}
	require.FailNow(n.t, "pod did not come to be "+what, "%s\n%+v", n.events(name), last.Status)
	return nil
}

func (n *node) awaitGone(name string) {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		_, err := n.client.CoreV1().Pods("default").Get(context.WithoutCancel(n.t.Context()), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, 20*time.Millisecond)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestNodeRegisters(t *testing.T) {
	n := startNode(t)
	var got *corev1.Node
	require.Eventually(t, func() bool {
		var err error
		got, err = n.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err == nil
	}, patience, 20*time.Millisecond)
	require.Equal(t, "n1", got.Labels[corev1.LabelHostname])
	require.Equal(t, "simulated://0.1.0", got.Status.NodeInfo.ContainerRuntimeVersion)
	require.Equal(t, int64(110), got.Status.Capacity.Pods().Value())
	require.Positive(t, got.Status.Allocatable.Memory().Value())
	for _, c := range got.Status.Conditions {
		require.Equal(t, c.Type == corev1.NodeReady, c.Status == corev1.ConditionTrue, c.Type)
	}
	require.Eventually(t, func() bool {
		lease, err := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "n1", metav1.GetOptions{})
		return err == nil && *lease.Spec.HolderIdentity == "n1"
	}, patience, 20*time.Millisecond)
}

// TestLabelsFollowTheConfiguration: an agent that is started with other flags takes off what the last one gave, and leaves what
// others gave.
func TestLabelsFollowTheConfiguration(t *testing.T) {
	n := startNode(t)
	labelled := func(want map[string]string) {
		t.Helper()
		require.Eventually(t, func() bool {
			got, err := n.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil {
				return false
			}
			for name, value := range want {
				if got.Labels[name] != value {
					return false
				}
			}
			return true
		}, patience, 20*time.Millisecond)
	}
	labelled(map[string]string{corev1.LabelHostname: "n1"})
	_, err := n.client.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata":{"labels":{"rack":"7"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	n.stop()
	n.labels = map[string]string{"kontiki.io/ingress": "true"}
	n.start()
	labelled(map[string]string{"kontiki.io/ingress": "true", "rack": "7"})
	n.stop()
	n.labels, n.noLabels = nil, []string{"kontiki.io/ingress", "kontiki.io/never-had"}
	n.start()
	labelled(map[string]string{"kontiki.io/ingress": "", "rack": "7"})
}

func TestPodLife(t *testing.T) {
	n := startNode(t)
	n.pod("p", nil)
	pod := n.await("p", "ready", isReady)
	require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	require.NotEmpty(t, pod.Status.PodIP)
	require.Equal(t, "127.0.0.1", pod.Status.HostIP)
	require.Contains(t, pod.Status.ContainerStatuses[0].ContainerID, "simulated://")
	require.NoError(t, n.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{}))
	n.awaitGone("p")
}
