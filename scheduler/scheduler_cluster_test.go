package scheduler

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// cluster is a real API server with the scheduler running.
type cluster struct {
	kubernetes.Interface
	t *testing.T
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	server := testcluster.Start(t)
	c := &cluster{Interface: server.Admin(), t: t}
	_, err := c.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	server.Go("scheduler", func(ctx context.Context) error {
		return Run(ctx, Config{REST: server.REST(pki.Scheduler), Log: server.Log})
	})
	return c
}

func (c *cluster) createNode(node *corev1.Node) {
	c.t.Helper()
	created, err := c.CoreV1().Nodes().Create(c.t.Context(), &corev1.Node{ObjectMeta: node.ObjectMeta}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	created.Spec.Taints = node.Spec.Taints // instead of the one that admission gives to a new node
	created, err = c.CoreV1().Nodes().Update(c.t.Context(), created, metav1.UpdateOptions{})
	require.NoError(c.t, err)
	created.Status.Allocatable, created.Status.Capacity = node.Status.Allocatable, node.Status.Allocatable
	_, err = c.CoreV1().Nodes().UpdateStatus(c.t.Context(), created, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) createPod(pod *corev1.Pod) {
	c.t.Helper()
	pod.Namespace, pod.UID = "default", ""
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = "x"
	}
	_, err := c.CoreV1().Pods("default").Create(c.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) pod(name string) *corev1.Pod {
	c.t.Helper()
	pod, err := c.CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return pod
}

func (c *cluster) eventually(what string, holds func() (bool, string)) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		ok, seen := holds()
		if ok {
			return
		}
		require.False(c.t, time.Now().After(deadline), "%s: last seen: %s", what, seen)
		select {
		case <-c.t.Context().Done():
			c.t.FailNow()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c *cluster) boundTo(pod, node string) {
	c.t.Helper()
	c.eventually(pod+" on "+node, func() (bool, string) {
		name := c.pod(pod).Spec.NodeName
		return name == node, name
	})
}

func (c *cluster) waitsBecause(pod, message string) {
	c.t.Helper()
	c.eventually(pod+" to wait", func() (bool, string) {
		for _, condition := range c.pod(pod).Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				return condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable && condition.Message == message, condition.Message
			}
		}
		return false, "no PodScheduled condition"
	})
}

func (c *cluster) hasEvent(pod, reason, message string) {
	c.t.Helper()
	c.eventually("event "+reason, func() (bool, string) {
		events, err := c.CoreV1().Events("default").List(c.t.Context(), metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.name": pod, "reason": reason}.String()})
		require.NoError(c.t, err)
		for _, event := range events.Items {
			if event.Message == message {
				return true, ""
			}
		}
		return false, fmt.Sprint(events.Items)
	})
}

func TestSchedulerBindsAndExplains(t *testing.T) {
	c := startCluster(t)
	c.createPod(testPod("early"))
	c.waitsBecause("early", "no nodes available to schedule pods")
	c.createNode(testNode("n1"))
	c.boundTo("early", "n1")
	c.hasEvent("early", "Scheduled", "Successfully assigned default/early to n1")

	c.createPod(testPod("large", asks("3")))
	c.boundTo("large", "n1")
	c.createPod(testPod("next", asks("2")))
	c.waitsBecause("next", "0/1 nodes are available: 1 Insufficient cpu.")
	c.hasEvent("next", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.")
	c.createPod(testPod("not ours", func(p *corev1.Pod) { p.Name, p.Spec.SchedulerName = "not-ours", "somebody" }))

	// A terminating pod still runs: its CPU is not free before it is gone.
	require.NoError(t, c.CoreV1().Pods("default").Delete(t.Context(), "large", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(30))}))
	c.createPod(testPod("after", asks("2")))
	c.waitsBecause("after", "0/1 nodes are available: 1 Insufficient cpu.")
	require.NoError(t, c.CoreV1().Pods("default").Delete(t.Context(), "large", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	c.boundTo("next", "n1") // both fit now
	c.boundTo("after", "n1")
	require.Empty(t, c.pod("not-ours").Spec.NodeName)
	require.Empty(t, c.pod("not-ours").Status.Conditions)
}

// CT-06: many pods at once never overfill a node.
func TestSchedulerNeverOverfillsANode(t *testing.T) {
	c := startCluster(t)
	roomy := func(n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourcePods] = *ptr.To(n.Status.Allocatable[corev1.ResourceMemory])
	}
	c.createNode(testNode("n1", roomy))
	c.createNode(testNode("n2", roomy))
	for i := range 30 {
		c.createPod(testPod(fmt.Sprintf("p%d", i), asks("1")))
	}
	used := func() map[string]int {
		pods, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		count := map[string]int{}
		for _, pod := range pods.Items {
			count[pod.Spec.NodeName]++
		}
		return count
	}
	c.eventually("both nodes to be full", func() (bool, string) {
		count := used()
		return count["n1"]+count["n2"] >= 8, fmt.Sprint(count)
	})
	c.createPod(testPod("last", asks("1")))
	c.waitsBecause("last", "0/2 nodes are available: 2 Insufficient cpu.") // all others were decided before it
	require.Equal(t, map[string]int{"n1": 4, "n2": 4, "": 23}, used())
}
