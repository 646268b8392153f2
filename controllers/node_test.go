package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestTaintsFollowConditions(t *testing.T) {
	node := &corev1.Node{}
	require.Equal(t, []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}, wantedTaints(node), "never reported")

	node.Spec.Unschedulable = true
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
	}
	wanted := wantedTaints(node)
	require.Equal(t, []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	}, wanted)

	early, people := metav1.NewTime(testNow.Add(-time.Hour)), corev1.Taint{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoExecute}
	present := []corev1.Taint{
		people, {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &early}, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	}
	merged, changed := mergeTaints(present, wanted, testNow)
	require.True(t, changed)
	require.Equal(t, people, merged[0])
	require.Equal(t, &early, merged[1].TimeAdded, "a taint that stays keeps its time")
	require.Len(t, merged, 5)
	again, changed := mergeTaints(merged, wanted, testNow.Add(time.Hour))
	require.False(t, changed)
	require.Equal(t, merged, again)
}

func TestEvictionTime(t *testing.T) {
	at := metav1.NewTime(testNow)
	taint := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}
	tolerate := func(seconds *int64) corev1.Toleration {
		return corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect, TolerationSeconds: seconds}
	}
	due, must := evictionTime([]corev1.Taint{taint}, nil)
	require.True(t, must)
	require.Zero(t, due, "not tolerated: now")

	_, must = evictionTime([]corev1.Taint{taint}, []corev1.Toleration{tolerate(nil)})
	require.False(t, must, "tolerated for ever")

	due, must = evictionTime([]corev1.Taint{taint}, []corev1.Toleration{tolerate(ptr.To(int64(300))), tolerate(ptr.To(int64(30)))})
	require.True(t, must)
	require.Equal(t, testNow.Add(30*time.Second), due, "the shortest counts")

	_, must = evictionTime([]corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}, nil)
	require.False(t, must)
}

func TestSurplusTerminated(t *testing.T) {
	done := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	aged := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(testNow.Add(-d)) }
	}
	pods := []*corev1.Pod{testPod("new", done, aged(time.Minute)), testPod("running", aged(time.Hour)), testPod("old", done, aged(time.Hour))}
	require.Equal(t, []*corev1.Pod{pods[2]}, surplusTerminated(pods, 1))
	require.Empty(t, surplusTerminated(pods, 2))
}
