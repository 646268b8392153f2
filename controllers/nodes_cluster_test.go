package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// nodeCluster is a real API server, and reconcilers with running informers that the test calls itself.
type nodeCluster struct {
	*cluster
	m *manager
}

func startNodes(t *testing.T) *nodeCluster {
	t.Helper()
	c := &nodeCluster{cluster: &cluster{Cluster: testcluster.Start(t), t: t, namespace: "default"}}
	c.Interface = c.Admin()
	var err error
	c.m, err = newManager(Config{REST: c.REST(pki.ControllerManager), Log: c.Log})
	require.NoError(t, err)
	require.NoError(t, c.m.addAll(others))
	stop := make(chan struct{})
	c.m.shared.Start(stop)
	c.m.nodeLeases.Start(stop)
	t.Cleanup(func() {
		close(stop)
		c.m.shared.Shutdown()
		c.m.nodeLeases.Shutdown()
		c.m.broadcaster.Shutdown()
	})
	c.m.shared.WaitForCacheSync(stop)
	c.m.nodeLeases.WaitForCacheSync(stop)
	_, err = c.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	return c
}

func reconcilerOf[T Reconciler](m *manager) T {
	for _, c := range m.controllers {
		if r, ok := c.reconciler.(T); ok {
			return r
		}
	}
	panic("no such reconciler")
}

func (c *nodeCluster) reconcile(r Reconciler, req Request) Result {
	c.t.Helper()
	result, err := r.Reconcile(c.t.Context(), req)
	require.NoError(c.t, err)
	return result
}

func (c *nodeCluster) cacheShows(what func() bool) {
	c.t.Helper()
	c.eventually("the cache", func() (bool, string) { return what(), "" })
}

// node reports Ready at a heartbeat of now+later, creating the node if needed, and waits for the cache.
func (c *nodeCluster) node(name string, later time.Duration) {
	c.t.Helper()
	ctx := c.t.Context()
	_, err := c.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.True(c.t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	node := c.liveNode(name)
	if later == 0 {
		node.Spec.Taints = nil // those that admission gives to new nodes
		node, err = c.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		require.NoError(c.t, err)
	}
	beat := metav1.NewTime(time.Now().Add(later))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: beat, LastTransitionTime: beat}}
	node, err = c.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	require.NoError(c.t, err)
	c.cacheShows(func() bool {
		cached, err := c.m.shared.Core().V1().Nodes().Lister().Get(name)
		return err == nil && cached.ResourceVersion == node.ResourceVersion
	})
}

func (c *nodeCluster) liveNode(name string) *corev1.Node {
	c.t.Helper()
	node, err := c.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return node
}

func (c *nodeCluster) livePod(name string) *corev1.Pod {
	c.t.Helper()
	pod, err := c.CoreV1().Pods(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return pod
}

// boundPod is ready on the node and tolerates its loss for 30 s.
func (c *nodeCluster) boundPod(name, node string) *corev1.Pod {
	c.t.Helper()
	pod, err := c.CoreV1().Pods(c.namespace).Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "x"}},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(30))},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.setReady(c.t.Context(), pod)
	c.cacheShows(func() bool {
		cached, err := c.m.shared.Core().V1().Pods().Lister().Pods(c.namespace).Get(name)
		return err == nil && podReady(cached)
	})
	return pod
}

// The clock of these reconcilers is ours; the API server is real.
func TestLostNode(t *testing.T) {
	c := startNodes(t)
	c.node("n1", 0)
	pod := c.boundPod("p", "n1")
	now := time.Now()
	lifecycle, eviction, collector := reconcilerOf[*nodeLifecycle](c.m), reconcilerOf[*taintEviction](c.m), reconcilerOf[*podGC](c.m)
	at := func(d time.Duration) {
		clock := func() time.Time { return now.Add(d) }
		lifecycle.now, eviction.now, collector.now = clock, clock, clock
	}

	at(0)
	result := c.reconcile(lifecycle, named("n1"))
	require.Equal(t, nodeGrace, result.RequeueAfter)
	require.Empty(t, c.liveNode("n1").Spec.Taints)

	at(nodeGrace)
	c.reconcile(lifecycle, named("n1"))
	lost := c.liveNode("n1")
	require.Equal(t, corev1.ConditionUnknown, lost.Status.Conditions[0].Status)
	require.Equal(t, "NodeStatusUnknown", lost.Status.Conditions[0].Reason)
	require.Len(t, lost.Spec.Taints, 2)
	require.False(t, podReady(c.livePod("p")), "the node cannot tell, so we do")

	c.cacheShows(func() bool {
		n, err := c.m.shared.Core().V1().Nodes().Lister().Get("n1")
		return err == nil && len(n.Spec.Taints) == 2
	})
	require.InDelta(t, 30*time.Second, c.reconcile(eviction, requestFor(pod)[0]).RequeueAfter, float64(time.Second))
	require.Nil(t, c.livePod("p").DeletionTimestamp)
	at(nodeGrace + 31*time.Second)
	c.reconcile(eviction, requestFor(pod)[0])
	require.NotNil(t, c.livePod("p").DeletionTimestamp)
	require.Equal(t, "DeletionByTaintManager", podCondition(c.livePod("p"), corev1.DisruptionTarget).Reason)

	c.node("n1", time.Minute) // it reports again
	c.reconcile(lifecycle, named("n1"))
	require.Empty(t, c.liveNode("n1").Spec.Taints)

	require.NoError(t, c.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}))
	c.cacheShows(func() bool {
		_, err := c.m.shared.Core().V1().Nodes().Lister().Get("n1")
		return apierrors.IsNotFound(err)
	})
	c.reconcile(collector, named("all"))
	require.NotNil(t, c.livePod("p"), "in quarantine")
	at(nodeGrace + 31*time.Second + orphanQuarantine)
	c.reconcile(collector, named("all"))
	_, err := c.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
