package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// CT-01: surge rounds up, unavailable rounds down, and both zero may not be.
func TestRollingLimits(t *testing.T) {
	percent := func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	for _, tc := range []struct {
		replicas           int32
		surge, unavailable *intstr.IntOrString
		wantSurge, wantUna int32
	}{
		{1, percent("25%"), percent("25%"), 1, 0},
		{5, percent("25%"), percent("25%"), 2, 1},
		{6, percent("25%"), percent("25%"), 2, 1},
		{10, percent("25%"), percent("25%"), 3, 2},
		{1, ptr.To(intstr.FromInt32(0)), percent("1%"), 0, 1},
		{3, ptr.To(intstr.FromInt32(0)), percent("1%"), 0, 1},
		{3, ptr.To(intstr.FromInt32(2)), ptr.To(intstr.FromInt32(0)), 2, 0},
		{0, percent("25%"), percent("25%"), 0, 1},
		{4, nil, nil, 0, 1},
	} {
		surge, unavailable := rollingLimits(tc.replicas, &appsv1.RollingUpdateDeployment{MaxSurge: tc.surge, MaxUnavailable: tc.unavailable})
		require.Equal(t, [2]int32{tc.wantSurge, tc.wantUna}, [2]int32{surge, unavailable}, "%d replicas, surge %v, unavailable %v", tc.replicas, tc.surge, tc.unavailable)
	}
}

func setOfSize(size int32, age time.Duration, maxNoted string) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}, Spec: appsv1.ReplicaSetSpec{Replicas: &size}}
	if maxNoted != "" {
		rs.Annotations = map[string]string{maxAnnotation: maxNoted}
	}
	return rs
}

func TestSharesKeepProportions(t *testing.T) {
	older, newer := setOfSize(8, time.Hour, "13"), setOfSize(5, time.Minute, "13")
	got := shares([]*appsv1.ReplicaSet{older, newer}, 20, 5, 13)
	require.Equal(t, []int32{15, 10}, []int32{got[older], got[newer]})

	// Down to nothing.
	got = shares([]*appsv1.ReplicaSet{older, newer}, 0, 0, 13)
	require.Equal(t, []int32{0, 0}, []int32{got[older], got[newer]})
}

// Whatever the sizes, shares add up to what is allowed and are never negative.
func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sets []*appsv1.ReplicaSet
		total := int32(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "sets") {
			size := rapid.Int32Range(1, 50).Draw(t, "size")
			sets = append(sets, setOfSize(size, time.Duration(i)*time.Minute, ""))
			total += size
		}
		replicas, surge := rapid.Int32Range(0, 100).Draw(t, "replicas"), rapid.Int32Range(0, 10).Draw(t, "surge")
		allowed := replicas + surge
		if replicas == 0 {
			allowed = 0
		}
		sum := int32(0)
		for _, size := range shares(sets, replicas, surge, total) {
			require.GreaterOrEqual(t, size, int32(0))
			sum += size
		}
		require.Equal(t, allowed, sum)
	})
}

func TestTemplateHash(t *testing.T) {
	a := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "a"}}}}
	b := *a.DeepCopy()
	require.Equal(t, templateHash(&a, nil), templateHash(&b, nil))
	require.NotEqual(t, templateHash(&a, nil), templateHash(&a, ptr.To(int32(1))), "a collision gives another name")
	b.Spec.Containers[0].Image = "b"
	require.NotEqual(t, templateHash(&a, nil), templateHash(&b, nil))
	require.False(t, sameTemplate(&a, &b))
	b = *a.DeepCopy()
	b.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "x"}
	require.True(t, sameTemplate(&a, &b))
}

// The status of a set that was made smaller says for a moment what it had before: those pods are going.
func TestPodsThatAreGoingDoNotCount_CT01(t *testing.T) {
	shrunk := setOfSize(5, 6, "")
	shrunk.Status.AvailableReplicas = 6
	growing := setOfSize(3, 2, "")
	growing.Status.AvailableReplicas = 2
	require.Equal(t, int32(7), lastingReplicas([]*appsv1.ReplicaSet{shrunk, growing}))
}

func TestProgressDeadline(t *testing.T) {
	start := time.Unix(1e9, 0)
	r := &rollout{
		Deployment: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(3)), ProgressDeadlineSeconds: ptr.To(int32(60))}},
		current:    setOfSize(3, 0, ""),
	}
	r.Status.Conditions = []appsv1.DeploymentCondition{progressing(corev1.ConditionTrue, reasonUpdated, "", start)}
	reasonAt := func(after time.Duration) string {
		status := r.status(start.Add(after))
		r.progress(&status, start.Add(after))
		return condition(&status, appsv1.DeploymentProgressing).Reason
	}
	require.Equal(t, reasonUpdated, reasonAt(59*time.Second))
	require.Equal(t, reasonTimedOut, reasonAt(60*time.Second))
	require.Equal(t, 61*time.Second, r.deadlineIn(&r.Status, start))

	r.current.Status.Replicas, r.current.Status.ReadyReplicas = 3, 1 // something moved
	require.Equal(t, reasonUpdated, reasonAt(60*time.Second))
	r.current.Status.AvailableReplicas = 3
	require.Equal(t, reasonComplete, reasonAt(61*time.Second))
	r.Spec.ProgressDeadlineSeconds = nil
	status := r.status(start)
	r.progress(&status, start)
	require.Nil(t, condition(&status, appsv1.DeploymentProgressing))
}
