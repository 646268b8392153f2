package controllers

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var guarded = map[string]string{"app": "guarded"}

func (c *cluster) budget(name string, spec policyv1.PodDisruptionBudgetSpec) {
	spec.Selector = &metav1.LabelSelector{MatchLabels: guarded}
	_, err := c.PolicyV1().PodDisruptionBudgets(c.namespace).Create(c.t.Context(),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(c.t, err)
}

// allowed waits until a budget has these numbers: expected pods, healthy ones, how many must be, how many may go.
func (c *cluster) allowed(name string, want [4]int32) {
	c.t.Helper()
	c.eventually("status of the budget", func() (bool, string) {
		b, err := c.PolicyV1().PodDisruptionBudgets(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
		require.NoError(c.t, err)
		got := [4]int32{b.Status.ExpectedPods, b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.DisruptionsAllowed}
		return got == want && b.Status.ObservedGeneration == b.Generation && len(b.Status.DisruptedPods) == 0, fmt.Sprint(got, b.Status)
	})
}

func (c *cluster) makeReady(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	_, err := c.CoreV1().Pods(c.namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) evict(pod string) error {
	return c.CoreV1().Pods(c.namespace).EvictV1(c.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: c.namespace}})
}

// Of ten evictions at a time no more succeed than the budget allows, and the others hear why not.
func TestEvictionsKeepToTheBudget(t *testing.T) {
	c := startCluster(t)
	pods := c.CoreV1().Pods(c.namespace)
	for i := range 10 {
		pod := quotaPod(fmt.Sprint("p", i))
		pod.Labels = guarded
		made, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		c.makeReady(made)
	}
	c.budget("b", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(7))})
	c.allowed("b", [4]int32{10, 10, 7, 3})

	var evicted, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			err := c.evict(fmt.Sprint("p", i))
			switch {
			case err == nil:
				evicted.Add(1)
			case apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
				refused.Add(1)
			default:
				t.Errorf("p%d: %v", i, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 3, evicted.Load())
	require.EqualValues(t, 7, refused.Load())
	c.allowed("b", [4]int32{7, 7, 7, 0})

	// One that is not ready takes nothing away while the others are enough.
	extra := quotaPod("extra")
	extra.Labels = guarded
	made, err := pods.Create(t.Context(), extra, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Status.Phase = corev1.PodRunning
	_, err = pods.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.allowed("b", [4]int32{8, 7, 7, 0})
	require.NoError(t, c.evict("extra"))

	c.budget("another", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(0))})
	left, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, c.evict(left.Items[0].Name), "more than one PodDisruptionBudget")
}

// What is left open by maxUnavailable and by percentages follows from how many pods the controller wants.
func TestBudgetsFollowReplicas(t *testing.T) {
	c := startCluster(t)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: guarded}, Spec: quotaPod("x").Spec}
	sets := c.AppsV1().ReplicaSets(c.namespace)
	_, err := sets.Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "rs"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To[int32](4), Selector: &metav1.LabelSelector{MatchLabels: guarded}, Template: template,
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.budget("one", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})
	c.budget("half", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("50%"))})
	c.eventually("pods", func() (bool, string) {
		pods, err := c.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return len(pods.Items) == 4, fmt.Sprint(len(pods.Items))
	})
	c.allowed("one", [4]int32{4, 0, 3, 0})
	pods, err := c.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range pods.Items {
		c.makeReady(&pods.Items[i])
	}
	c.allowed("one", [4]int32{4, 4, 3, 1})
	c.allowed("half", [4]int32{4, 4, 2, 2})
}
