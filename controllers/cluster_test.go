package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// cluster is a real API server with all controllers running, and a namespace for the test.
type cluster struct {
	*testcluster.Cluster
	kubernetes.Interface
	t         *testing.T
	namespace string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: testcluster.StartWithAccounts(t), t: t, namespace: "test"}
	c.Interface = c.Admin()
	c.Go("controllers", func(ctx context.Context) error {
		return Run(ctx, Config{REST: c.REST(pki.ControllerManager), RootCA: c.PKI.CA, Signer: c.PKI, Tokens: c.Cluster, Log: c.Log})
	})
	c.createNamespace(c.namespace)
	return c
}

func (c *cluster) createNamespace(name string) {
	c.t.Helper()
	_, err := c.CoreV1().Namespaces().Create(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	// Pods need the account, and admission refuses them before it exists.
	c.eventually("default ServiceAccount", func() (bool, string) {
		_, err := c.CoreV1().ServiceAccounts(name).Get(c.t.Context(), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// eventually polls until the condition holds, and fails with what it last saw.
func (c *cluster) eventually(what string, holds func() (bool, string)) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		ok, seen := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not within a minute; last seen: %s", what, seen)
		}
		select {
		case <-c.t.Context().Done():
			c.t.FailNow()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kubelet makes the pods of the test's namespace run: an image "bad…" never gets ready, all others are ready at once. Pods
// have no node, so the API server deletes them without it. It says how many pods it has ever seen.
func (c *cluster) kubelet() *atomic.Int64 {
	seen := &atomic.Int64{}
	c.Go("kubelet", func(ctx context.Context) error {
		factory := informers.NewSharedInformerFactoryWithOptions(c.Interface, 0, informers.WithNamespace(c.namespace))
		run := func(obj any) {
			pod := obj.(*corev1.Pod)
			if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && !strings.HasPrefix(pod.Spec.Containers[0].Image, "bad") {
				c.setReady(ctx, pod)
			}
		}
		_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { seen.Add(1); run(obj) }, UpdateFunc: func(_, obj any) { run(obj) },
		})
		if err != nil {
			return err
		}
		factory.StartWithContext(ctx)
		<-ctx.Done()
		factory.Shutdown()
		return nil
	})
	return seen
}

// setReady gives up on a pod that changed or went meanwhile: it is seen again, or not needed. A server that is down is
// waited for.
func (c *cluster) setReady(ctx context.Context, pod *corev1.Pod) {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = "10.244.9.9", []corev1.PodIP{{IP: "10.244.9.9"}}
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	for {
		_, err := c.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// testDeployment has pods that no scheduler picks up.
func testDeployment(name string, replicas int32, image string) *appsv1.Deployment {
	set := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: set},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: set}, Spec: corev1.PodSpec{
				SchedulerName: "nobody", TerminationGracePeriodSeconds: ptr.To(int64(0)),
				Containers: []corev1.Container{{Name: "c", Image: image}},
			}},
		},
	}
}

func (c *cluster) createDeployment(d *appsv1.Deployment) *appsv1.Deployment {
	c.t.Helper()
	created, err := c.AppsV1().Deployments(c.namespace).Create(c.t.Context(), d, metav1.CreateOptions{})
	require.NoError(c.t, err)
	return created
}

func (c *cluster) deployment(name string) *appsv1.Deployment {
	c.t.Helper()
	d, err := c.AppsV1().Deployments(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return d
}

func (c *cluster) replicaSets(selector string) []appsv1.ReplicaSet {
	c.t.Helper()
	list, err := c.AppsV1().ReplicaSets(c.namespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(c.t, err)
	return list.Items
}

func (c *cluster) pods(selector string) []corev1.Pod {
	c.t.Helper()
	list, err := c.CoreV1().Pods(c.namespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(c.t, err)
	return list.Items
}

// changeDeployment updates until it does not conflict.
func (c *cluster) changeDeployment(name string, change func(*appsv1.Deployment)) {
	c.t.Helper()
	c.eventually("update of "+name, func() (bool, string) {
		d := c.deployment(name)
		change(d)
		_, err := c.AppsV1().Deployments(c.namespace).Update(c.t.Context(), d, metav1.UpdateOptions{})
		require.True(c.t, err == nil || apierrors.IsConflict(err), "%v", err)
		return err == nil, fmt.Sprint(err)
	})
}

// rolledOut waits until the Deployment is complete.
func (c *cluster) rolledOut(name string) *appsv1.Deployment {
	c.t.Helper()
	var d *appsv1.Deployment
	c.eventually("rollout of "+name, func() (bool, string) {
		d = c.deployment(name)
		s, want := d.Status, *d.Spec.Replicas
		done := s.ObservedGeneration == d.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want
		return done, fmt.Sprintf("%+v", s)
	})
	return d
}
