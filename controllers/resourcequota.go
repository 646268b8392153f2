package controllers

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/quota"
)

const (
	// quotaSettle is how long a quota waits for further deletions before it is recounted.
	quotaSettle = 200 * time.Millisecond
	// quotaSecondLook follows a change of limits: an API server that had not heard of them yet may have let something in
	// without charging it.
	quotaSecondLook = 5 * time.Second
	// quotaResync is how often a quota is recounted without any event, as in kube-controller-manager. What counts less
	// by the clock alone (pods of lost nodes) is found by it.
	quotaResync = 5 * time.Minute
)

// resourceQuota keeps status.hard and status.used of quotas. Admission adds to used what is created, in the transaction
// that creates it (apiserver/admission/resourcequota.go); this controller recounts when something is deleted, ends or
// shrinks, and when limits change.
//
// A recount is exact although others create meanwhile: it lists the objects at a revision not older than the quota's, and writes on
// condition that the quota is still of that revision. Whatever the list has in addition was charged after that revision,
// which makes the write fail; whatever was charged before is in the list.
type resourceQuota struct {
	client   kubernetes.Interface
	metadata metadata.Interface
	monitors *monitors
	now      func() time.Time
}

func addResourceQuota(m *manager) error {
	client, err := m.client("resourcequota")
	if err != nil {
		return err
	}
	rest := m.restConfig("resourcequota")
	metadataClient, err := metadata.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("controllers: metadata client: %w", err)
	}
	core := m.shared.Core().V1()
	r := &resourceQuota{client: client, metadata: metadataClient, monitors: m.monitors, now: time.Now}
	c := m.add("resourcequota", 2, r)
	watchUpdates(c, core.ResourceQuotas().Informer(), requestFor[*corev1.ResourceQuota], func(before, after *corev1.ResourceQuota) bool {
		return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !quota.Equal(after.Spec.Hard, after.Status.Hard)
	})
	recount := quotasToRecount{c: c, quotas: core.ResourceQuotas().Lister()}
	m.monitors.gone = recount.of
	for resource, informer := range map[string]cache.SharedIndexInformer{
		"pods": core.Pods().Informer(), "services": core.Services().Informer(), "persistentvolumeclaims": core.PersistentVolumeClaims().Informer(),
	} {
		if err := recount.watchLess(informer, quota.Of(corev1.Resource(resource))); err != nil {
			return err
		}
	}
	return nil
}

// Reconcile implements Reconciler.
func (r *resourceQuota) Reconcile(ctx context.Context, req Request) (Result, error) {
	if !r.monitors.discovered() {
		return Result{RequeueAfter: discoveryRetry}, nil
	}
	q, err := r.client.CoreV1().ResourceQuotas(req.Namespace).Get(ctx, req.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	used, err := r.count(ctx, q)
	if err != nil {
		return Result{}, err
	}
	again := Result{RequeueAfter: quotaResync}
	known := quota.Equal(q.Spec.Hard, q.Status.Hard)
	if known && quota.Equal(used, q.Status.Used) {
		return again, nil
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: used}
	if _, err := r.client.CoreV1().ResourceQuotas(q.Namespace).UpdateStatus(ctx, q, metav1.UpdateOptions{}); err != nil {
		return Result{}, err
	}
	if !known {
		again.RequeueAfter = quotaSecondLook
	}
	return again, nil
}

// count lists what the quota limits. Resources that are not served are not counted.
func (r *resourceQuota) count(ctx context.Context, q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	used := corev1.ResourceList{}
	for measure, names := range quota.For(q.Spec.Hard) {
		resource, served := r.monitors.servedAs(measure.Resource)
		if !served {
			continue
		}
		objects, err := r.list(ctx, q, resource, measure.CountsOnly(q, names))
		if err != nil {
			return nil, err
		}
		maps.Copy(used, measure.Recount(q, names, objects, r.now()))
	}
	return used, nil
}

// list returns the objects of a resource beside the quota, as of a revision not older than the quota's.
func (r *resourceQuota) list(ctx context.Context, q *corev1.ResourceQuota, resource schema.GroupVersionResource, metadataOnly bool) ([]runtime.Object, error) {
	options := metav1.ListOptions{ResourceVersion: q.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	var list runtime.Object
	var err error
	switch {
	case metadataOnly:
		list, err = r.metadata.Resource(resource).Namespace(q.Namespace).List(ctx, options)
	case resource.Resource == "pods":
		list, err = r.client.CoreV1().Pods(q.Namespace).List(ctx, options)
	case resource.Resource == "services":
		list, err = r.client.CoreV1().Services(q.Namespace).List(ctx, options)
	case resource.Resource == "persistentvolumeclaims":
		list, err = r.client.CoreV1().PersistentVolumeClaims(q.Namespace).List(ctx, options)
	default:
		list, err = r.client.ResourceV1().ResourceClaims(q.Namespace).List(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	return meta.ExtractList(list)
}

// quotasToRecount asks for the quotas of a namespace that something may have become less of.
type quotasToRecount struct {
	c      *controller
	quotas corelisters.ResourceQuotaLister
}

// of is called for every deletion of whatever resource: it looks at caches only.
func (t quotasToRecount) of(resource schema.GroupResource, namespace string) {
	t.each(namespace, func(q *corev1.ResourceQuota) bool {
		for measure := range quota.For(q.Spec.Hard) {
			if measure.Resource == resource {
				return true
			}
		}
		return false
	})
}

// watchLess asks when an object, without being deleted, uses less than before: a pod that has ended, above all.
func (t quotasToRecount) watchLess(informer cache.SharedIndexInformer, measure *quota.Measure) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		now := time.Now()
		t.each(after.(metav1.Object).GetNamespace(), func(q *corev1.ResourceQuota) bool {
			return measure.Frees(q, before.(runtime.Object), after.(runtime.Object), now)
		})
	}})
	return err
}

// each asks for the quotas of a namespace for which less holds. Several requests within quotaSettle are one.
func (t quotasToRecount) each(namespace string, less func(*corev1.ResourceQuota) bool) {
	if namespace == "" {
		return
	}
	quotas, err := t.quotas.ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return // a lister of an informer does not fail
	}
	for _, q := range quotas {
		if less(q) {
			t.c.queue.AddAfter(requestFor(q)[0], quotaSettle)
		}
	}
}
