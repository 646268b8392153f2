package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestInformer runs an unmodified client-go informer, which asks for a streamed initial list.
func TestInformer(t *testing.T) {
	n := shared(t)
	ns := namespace(t, n)
	clientset := kubernetes.NewForConfigOrDie(n.restConfig(t))
	maps := clientset.CoreV1().ConfigMaps(ns)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	create := func(name string) *corev1.ConfigMap {
		cm, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return cm
	}
	create("before")

	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(ns))
	events := make(chan string, 100)
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { events <- "add " + obj.(*corev1.ConfigMap).Name },
		UpdateFunc: func(_, obj any) { events <- "update " + obj.(*corev1.ConfigMap).Name },
		DeleteFunc: func(obj any) { events <- "delete " + obj.(*corev1.ConfigMap).Name },
	})
	require.NoError(t, err)
	factory.Start(ctx.Done())
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))

	after := create("after")
	after.Data = map[string]string{"k": "v"}
	_, err = maps.Update(ctx, after, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, maps.Delete(ctx, "after", metav1.DeleteOptions{}))
	var seen []string
	for len(seen) < 8 && !slices.Contains(seen, "delete after") {
		select {
		case e := <-events:
			if e == "add before" || e[len(e)-5:] == "after" {
				seen = append(seen, e)
			}
		case <-ctx.Done():
			t.Fatalf("events so far: %v", seen)
		}
	}
	require.Equal(t, []string{"add before", "add after", "update after", "delete after"}, seen)
}

// TestControllerRuntime runs an unmodified controller-runtime manager with leader election and a
// reconciler that labels ConfigMaps.
func TestControllerRuntime(t *testing.T) {
	n := shared(t)
	ns := namespace(t, n)
	manager, err := ctrl.NewManager(n.restConfig(t), ctrl.Options{
		LeaderElection: true, LeaderElectionID: "e2e", LeaderElectionNamespace: ns,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	require.NoError(t, err)
	c := manager.GetClient()
	reconciler := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		var cm corev1.ConfigMap
		if err := c.Get(ctx, req.NamespacedName, &cm); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if req.Namespace != ns || cm.Labels["seen"] == "yes" {
			return reconcile.Result{}, nil
		}
		patch := client.MergeFrom(cm.DeepCopy())
		cm.Labels = map[string]string{"seen": "yes"}
		return reconcile.Result{}, c.Patch(ctx, &cm, patch)
	})
	require.NoError(t, ctrl.NewControllerManagedBy(manager).Named("label-"+ns).For(&corev1.ConfigMap{}).Complete(reconciler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})

	require.NoError(t, c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"}}))
	clientset := kubernetes.NewForConfigOrDie(n.restConfig(t))
	eventually(t, time.Minute, func() string {
		cm, err := clientset.CoreV1().ConfigMaps(ns).Get(ctx, "mine", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if cm.Labels["seen"] != "yes" {
			return "the reconciler has not labelled the ConfigMap"
		}
		return ""
	})
}
