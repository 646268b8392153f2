package controllers

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func (c *cluster) createQuota(name string, hard corev1.ResourceList) {
	c.t.Helper()
	_, err := c.CoreV1().ResourceQuotas(c.namespace).Create(c.t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
}

// used waits until a quota says that so much is used.
func (c *cluster) used(name string, want map[corev1.ResourceName]string) {
	c.t.Helper()
	c.eventually("usage of "+name, func() (bool, string) {
		q, err := c.CoreV1().ResourceQuotas(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
		require.NoError(c.t, err)
		got := map[corev1.ResourceName]string{}
		for name, amount := range q.Status.Used {
			got[name] = amount.String()
		}
		return maps.Equal(got, want), fmt.Sprint(got)
	})
}

func quotaPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: apiresource.MustParse("64Mi")},
		}}},
	}}
}

func TestResourceQuotaFollowsLives(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	_, err := c.CoreV1().Secrets(c.namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "before"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.createQuota("q", corev1.ResourceList{
		"pods": apiresource.MustParse("2"), "requests.memory": apiresource.MustParse("1Gi"), "count/pods": apiresource.MustParse("9"), "secrets": apiresource.MustParse("2"),
		"count/replicasets.apps": apiresource.MustParse("1"), "gold.storageclass.storage.k8s.io/requests.storage": apiresource.MustParse("1Gi"), "count/widgets.example.com": apiresource.MustParse("1"),
	})
	none := map[corev1.ResourceName]string{
		"pods": "0", "requests.memory": "0", "count/pods": "0", "secrets": "1", "count/replicasets.apps": "0",
		"gold.storageclass.storage.k8s.io/requests.storage": "0", // and nothing of widgets, which are not served
	}
	c.used("q", none)
	pods := c.CoreV1().Pods(c.namespace)
	for _, name := range []string{"a", "b"} {
		_, err := pods.Create(ctx, quotaPod(name), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	_, err = pods.Create(ctx, quotaPod("c"), metav1.CreateOptions{})
	require.ErrorContains(t, err, "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2")
	two := maps.Clone(none)
	two["pods"], two["requests.memory"], two["count/pods"] = "2", "128Mi", "2"
	c.used("q", two)

	// A pod that has ended is an object and nothing more.
	ended, err := pods.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	ended.Status.Phase = corev1.PodSucceeded
	_, err = pods.UpdateStatus(ctx, ended, metav1.UpdateOptions{})
	require.NoError(t, err)
	two["pods"], two["requests.memory"] = "1", "64Mi"
	c.used("q", two)

	for _, name := range []string{"a", "b"} {
		require.NoError(t, pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	}
	require.NoError(t, c.CoreV1().Secrets(c.namespace).Delete(ctx, "before", metav1.DeleteOptions{}))
	none["secrets"] = "0"
	c.used("q", none)

	q, err := c.CoreV1().ResourceQuotas(c.namespace).Get(ctx, "q", metav1.GetOptions{})
	require.NoError(t, err)
	q.Spec.Hard = corev1.ResourceList{"secrets": apiresource.MustParse("5")}
	_, err = c.CoreV1().ResourceQuotas(c.namespace).Update(ctx, q, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.used("q", map[corev1.ResourceName]string{"secrets": "0"})
}

// Creators and deleters at work, failures among them: never more than the limit at any moment, and exact in the end.
func TestResourceQuotaIsExactWhileObjectsComeAndGo(t *testing.T) {
	const workers, rounds, limit = 16, 8, 10
	c := startCluster(t)
	c.createQuota("q", corev1.ResourceList{"count/secrets": apiresource.MustParse(fmt.Sprint(limit))})
	c.used("q", map[corev1.ResourceName]string{"count/secrets": "0"})
	secrets := c.CoreV1().Secrets(c.namespace)
	var made atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range rounds {
				name := fmt.Sprintf("s-%d-%d", w, i)
				if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err == nil {
					made.Add(1)
				} else if !apierrors.IsForbidden(err) {
					t.Errorf("create: %v", err)
				}
				list, err := secrets.List(t.Context(), metav1.ListOptions{})
				if err != nil || len(list.Items) > limit {
					t.Errorf("%d secrets, limit %d, %v", len(list.Items), limit, err)
				}
				if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, made.Load(), int64(limit))
	c.used("q", map[corev1.ResourceName]string{"count/secrets": "0"})
}
