package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func (c *cluster) replicationController(name string) *corev1.ReplicationController {
	c.t.Helper()
	rc, err := c.CoreV1().ReplicationControllers(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return rc
}

func (c *cluster) scaleReplicationController(name string, replicas int) {
	c.t.Helper()
	_, err := c.CoreV1().ReplicationControllers(c.namespace).Patch(c.t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	require.NoError(c.t, err)
}

// replicationControllerReady waits until the status of a ReplicationController counts so many pods, all ready, for its newest generation.
func (c *cluster) replicationControllerReady(name string, count int32) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%s has %d", name, count), func() (bool, string) {
		rc := c.replicationController(name)
		s := rc.Status
		return s.ObservedGeneration == rc.Generation && s.Replicas == count && s.ReadyReplicas == count && s.AvailableReplicas == count &&
			s.FullyLabeledReplicas == count && len(c.pods("app="+name)) == int(count), fmt.Sprintf("%+v", s)
	})
}

func testReplicationController(name string, replicas int32) *corev1.ReplicationController {
	set := map[string]string{"app": name}
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ReplicationControllerSpec{Replicas: &replicas, Selector: set, Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: set},
			Spec: corev1.PodSpec{
				SchedulerName: "nobody", TerminationGracePeriodSeconds: ptr.To(int64(0)), Containers: []corev1.Container{{Name: "c", Image: "good:1"}},
			},
		}},
	}
}

// TestReplicationController: it adopts what matches, makes what is missing, lets go of what matches no more, and takes away what
// is too much; events are about it.
func TestReplicationController(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	rcs, pods := c.CoreV1().ReplicationControllers(c.namespace), c.CoreV1().Pods(c.namespace)
	rc := testReplicationController("old", 3)
	orphan, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: map[string]string{"app": "old"}}, Spec: rc.Spec.Template.Spec,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	created, err := rcs.Create(t.Context(), rc, metav1.CreateOptions{})
	require.NoError(t, err)
	c.replicationControllerReady("old", 3)
	orphan, err = pods.Get(t.Context(), orphan.Name, metav1.GetOptions{})
	require.NoError(t, err)
	want := metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "old", UID: created.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
	require.Equal(t, []metav1.OwnerReference{want}, orphan.OwnerReferences)

	_, err = pods.Patch(t.Context(), "orphan", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"free"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.replicationControllerReady("old", 3)
	c.eventually("the pod is free", func() (bool, string) {
		free, err := pods.Get(t.Context(), "orphan", metav1.GetOptions{})
		return err == nil && len(free.OwnerReferences) == 0, fmt.Sprint(err)
	})
	c.scaleReplicationController("old", 1)
	c.replicationControllerReady("old", 1)
	c.eventually("an event about it", func() (bool, string) {
		list, err := c.CoreV1().Events(c.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=ReplicationController,involvedObject.name=old,reason=SuccessfulCreate"})
		return err == nil && len(list.Items) > 0, fmt.Sprint(err)
	})
}

// TestReplicationControllerTellsOfFailure: what keeps it from making pods is in its status, as long as it does.
func TestReplicationControllerTellsOfFailure(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.createQuota("two", corev1.ResourceList{corev1.ResourcePods: apiresource.MustParse("2")})
	c.used("two", map[corev1.ResourceName]string{corev1.ResourcePods: "0"})
	_, err := c.CoreV1().ReplicationControllers(c.namespace).Create(t.Context(), testReplicationController("old", 3), metav1.CreateOptions{})
	require.NoError(t, err)
	c.eventually("it tells of the quota", func() (bool, string) {
		conditions := c.replicationController("old").Status.Conditions
		return len(conditions) == 1 && conditions[0].Type == corev1.ReplicationControllerReplicaFailure && conditions[0].Status == corev1.ConditionTrue &&
			conditions[0].Reason == "FailedCreate", fmt.Sprintf("%+v", conditions)
	})
	c.scaleReplicationController("old", 2)
	c.replicationControllerReady("old", 2)
	c.eventually("the condition is gone", func() (bool, string) {
		conditions := c.replicationController("old").Status.Conditions
		return len(conditions) == 0, fmt.Sprintf("%+v", conditions)
	})
}
