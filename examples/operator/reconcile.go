package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	webv1 "kontiki/examples/operator/api/v1"
)

// +kubebuilder:rbac:groups=web.example.com,resources=sites,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=web.example.com,resources=sites/status,verbs=patch
// +kubebuilder:rbac:groups=web.example.com,resources=sites/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SiteReconciler makes of every Site what it asks for.
type SiteReconciler struct {
	client.Client
	Events    events.EventRecorder
	Directory Directory
}

// Reconcile takes one Site a step further. It may be called at any time and again: each step looks at what there is.
func (r *SiteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var site webv1.Site
	if err := r.Get(ctx, req.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.leave(ctx, &site)
	}
	// First the promise to clean up, then what has to be cleaned up.
	if controllerutil.AddFinalizer(&site, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &site) // the change of it brings us back here
	}
	if err := r.Directory.Enter(ctx, &site); err != nil {
		return ctrl.Result{}, err
	}
	// Applying says all that we want of the Deployment, and nothing of what others do; the answer is what became of it.
	deployment := deploymentOf(&site)
	if err := r.Apply(ctx, deployment, client.FieldOwner(owner), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &site, statusOf(&site, deployment))
}

// leave lets a Site go whose entry has been taken away. What it owns the garbage collector takes.
func (r *SiteReconciler) leave(ctx context.Context, site *webv1.Site) error {
	if !controllerutil.ContainsFinalizer(site, finalizer) {
		return nil
	}
	if err := r.Directory.Remove(ctx, site); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(site, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, site))
}

// report writes the status if it has changed, and tells of a Site that has become ready.
func (r *SiteReconciler) report(ctx context.Context, site *webv1.Site, status webv1.SiteStatus) error {
	if equality.Semantic.DeepEqual(site.Status, status) {
		return nil
	}
	was, is := meta.IsStatusConditionTrue(site.Status.Conditions, "Ready"), meta.IsStatusConditionTrue(status.Conditions, "Ready")
	before := site.DeepCopy()
	site.Status = status
	if err := r.Status().Patch(ctx, site, client.MergeFrom(before)); err != nil {
		return err
	}
	if is && !was {
		r.Events.Eventf(site, nil, "Normal", "Ready", "Reconcile", "%d of %d servers answer", status.ReadyReplicas, *site.Spec.Replicas)
	}
	return nil
}
