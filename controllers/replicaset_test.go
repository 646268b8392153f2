package controllers

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

var testNow = time.Unix(1_700_000_000, 0)

func testPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), CreationTimestamp: metav1.NewTime(testNow.Add(-time.Hour))},
		Spec:       corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(testNow.Add(-d))}}
	}
}

func TestDeletionOrder(t *testing.T) {
	ready := readyFor(time.Hour)
	// Each pod has one thing that puts it before the one after it.
	want := []*corev1.Pod{
		testPod("unassigned", func(p *corev1.Pod) { p.Spec.NodeName = "" }),
		testPod("pending", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		testPod("unknown", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }),
		testPod("not ready"),
		testPod("cheap", ready, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "-5"} }),
		testPod("crowded", ready, func(p *corev1.Pod) { p.Spec.NodeName = "crowded" }),
		testPod("ready lately", readyFor(time.Minute)),
		testPod("restarted", ready, func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}} }),
		testPod("young", ready, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(testNow.Add(-time.Minute)) }),
		testPod("by uid 1", ready),
		testPod("by uid 2", ready),
		testPod("dear", ready, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "5"} }),
	}
	got := make([]*corev1.Pod, len(want))
	for i := range want {
		got[len(want)-1-i] = want[i]
	}
	deletionOrder(got, map[string]int{"crowded": 3, "node": 1}, testNow)
	for i := range want {
		require.Equal(t, want[i].Name, got[i].Name, "place %d", i)
	}
}

func TestReplicaSetStatus(t *testing.T) {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	rs.Spec.Replicas, rs.Spec.MinReadySeconds = ptr.To(int32(4)), 10
	rs.Spec.Template.Labels = map[string]string{"app": "x", "tier": "y"}
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x", "tier": "y"} }
	status, wait := replicaSetStatus(rs, []*corev1.Pod{
		testPod("available", labelled, readyFor(time.Minute)),
		testPod("ready", labelled, readyFor(4*time.Second)),
		testPod("unready", labelled),
		testPod("other label", readyFor(time.Minute)),
	}, 2, errors.New("quota"), testNow)
	require.Equal(t, 6*time.Second, wait, "until the next becomes available")
	require.Equal(t, appsv1.ReplicaSetStatus{
		Replicas: 4, FullyLabeledReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 2, TerminatingReplicas: ptr.To(int32(2)), ObservedGeneration: 7,
		Conditions: []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "quota", LastTransitionTime: metav1.NewTime(testNow),
		}},
	}, status)
}

func TestOwnWrites(t *testing.T) {
	writes, owner := newOwnWrites(), types.NamespacedName{Namespace: "ns", Name: "rs"}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	require.True(t, writes.caughtUp(owner, "1", store), "nothing written")
	writes.recordCreate(owner, "1", "9")
	writes.recordCreate(owner, "1", "102")
	writes.recordCreate(owner, "1", "10")
	require.False(t, writes.caughtUp(owner, "1", store), "an empty store has reached nothing")
	store.Bookmark("99")
	require.False(t, writes.caughtUp(owner, "1", store), "99 is less than 102, whatever strings say")
	require.True(t, writes.caughtUp(owner, "2", store), "another uid has written nothing")
	writes.recordCreate(owner, "1", "102")
	store.Bookmark("102")
	require.True(t, writes.caughtUp(owner, "1", store))

	writes.recordDelete(owner, "1", "a")
	writes.recordDelete(owner, "1", "b")
	require.Equal(t, sets.New[types.UID]("a"), writes.stillShown(owner, "1", sets.New[types.UID]("a", "c")))
	require.Empty(t, writes.stillShown(owner, "1", sets.New[types.UID]()))
	require.Empty(t, writes.stillShown(owner, "1", sets.New[types.UID]("a")), "once seen gone it is forgotten")
}
