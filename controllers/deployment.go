package controllers

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"kontiki/internal/apiclient"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// deployment keeps one ReplicaSet per pod template and moves replicas from the old ones to the new one. It never touches
// pods. The idea is spread over files:
//
//	deployment_template.go  which ReplicaSet is the new one; its name, hash and revision; history and its clean-up
//	deployment_rolling.go   how far a rolling update may go in one step
//	deployment_scale.go     spreading a changed number of replicas over the ReplicaSets of an unfinished rollout
//	deployment_status.go    counts and conditions
//
// Only the API server's optimistic concurrency guards against a stale cache here: a ReplicaSet is created under a name that
// its template determines, and scaled by an update that carries its resourceVersion.
type deployment struct {
	client      kubernetes.Interface
	deployments appslisters.DeploymentLister
	sets        cache.Indexer
	pods        cache.Indexer
	recorder    record.EventRecorder
	now         func() time.Time
}

func addDeployment(m *manager) error {
	client, err := m.client("deployment")
	if err != nil {
		return err
	}
	deployments, sets, pods := m.shared.Apps().V1().Deployments(), m.shared.Apps().V1().ReplicaSets(), m.shared.Core().V1().Pods()
	if err := indexByController(sets.Informer()); err != nil {
		return err
	}
	d := &deployment{
		client: client, deployments: deployments.Lister(), sets: sets.Informer().GetIndexer(), pods: pods.Informer().GetIndexer(),
		recorder: m.recorder("deployment"), now: time.Now,
	}
	c := m.add("deployment", 5, d)
	watch(c, deployments.Informer(), requestFor[*appsv1.Deployment])
	watch(c, sets.Informer(), d.requestsForSet)
	// Pods matter only by going away: Recreate waits for the last old one.
	_, err = pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if pod, ok := apiclient.LastKnown[*corev1.Pod](obj); ok {
			c.enqueue(d.requestsForPod(pod)...)
		}
	}})
	return err
}

// requestsForSet wakes the owner, or, for an orphan, the Deployments of its namespace: one of them may adopt it.
func (d *deployment) requestsForSet(rs *appsv1.ReplicaSet) []Request {
	if metav1.GetControllerOfNoCopy(rs) != nil {
		return requestForController[*appsv1.ReplicaSet]("Deployment")(rs)
	}
	all, err := d.deployments.Deployments(rs.Namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	var requests []Request
	for _, candidate := range all {
		if selects(candidate.Spec.Selector, rs.Labels) {
			requests = append(requests, requestFor(candidate)...)
		}
	}
	return requests
}

func (d *deployment) requestsForPod(pod *corev1.Pod) []Request {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return nil
	}
	obj, exists, err := d.sets.GetByKey(pod.Namespace + "/" + owner.Name)
	if err != nil || !exists {
		return nil
	}
	return requestForController[*appsv1.ReplicaSet]("Deployment")(obj.(*appsv1.ReplicaSet))
}

// rollout is what one reconcile of a Deployment works on. old is sorted by age, the oldest first; current is nil while the
// template has no ReplicaSet yet.
type rollout struct {
	*appsv1.Deployment
	current *appsv1.ReplicaSet
	old     []*appsv1.ReplicaSet
	// created: this reconcile has made current.
	created bool
}

func (r *rollout) all() []*appsv1.ReplicaSet {
	if r.current == nil {
		return r.old
	}
	return append(append([]*appsv1.ReplicaSet{}, r.old...), r.current)
}

func (d *deployment) Reconcile(ctx context.Context, req Request) (Result, error) {
	cached, err := d.deployments.Deployments(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	if emptySelector(cached.Spec.Selector) {
		d.recorder.Event(cached, corev1.EventTypeWarning, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")
		return Result{}, nil
	}
	r := &rollout{Deployment: cached.DeepCopy()}
	sets, err := d.claimSets(ctx, r.Deployment)
	if err != nil {
		return Result{}, err
	}
	r.divide(sets)
	switch {
	case r.DeletionTimestamp != nil: // the garbage collector takes it from here
	case r.Spec.Paused:
		err = d.whilePaused(ctx, r)
	case r.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		err = d.recreate(ctx, r)
	case r.replicasChanged():
		err = d.scale(ctx, r)
	default:
		err = d.roll(ctx, r)
	}
	if errors.Is(err, ErrDeleting) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	wait, err := d.updateStatus(ctx, r)
	return Result{RequeueAfter: wait}, err
}

func (d *deployment) claimSets(ctx context.Context, owner *appsv1.Deployment) ([]*appsv1.ReplicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(owner.Spec.Selector)
	if err != nil {
		return nil, err
	}
	candidates, err := indexed[*appsv1.ReplicaSet](d.sets, byController, string(owner.UID), orphansOf(owner.Namespace))
	if err != nil {
		return nil, err
	}
	return claimer[*appsv1.ReplicaSet]{
		owner: owner, kind: deploymentKind, selector: selector,
		reread: func(ctx context.Context) (metav1.Object, error) {
			return d.client.AppsV1().Deployments(owner.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		},
		patch: func(ctx context.Context, rs *appsv1.ReplicaSet, patch []byte) error {
			_, err := d.client.AppsV1().ReplicaSets(rs.Namespace).Patch(ctx, rs.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}.claim(ctx, candidates)
}

// whilePaused scales but does not roll out: template changes collect until the Deployment is resumed.
func (d *deployment) whilePaused(ctx context.Context, r *rollout) error {
	if err := d.scale(ctx, r); err != nil {
		return err
	}
	return d.trimHistory(ctx, r)
}

// roll takes one step of a rolling update: either up or down, so that the next step sees what this one led to.
func (d *deployment) roll(ctx context.Context, r *rollout) error {
	if err := d.ensureCurrent(ctx, r); err != nil {
		return err
	}
	if want := r.newReplicas(); want != *r.current.Spec.Replicas {
		return d.resizeCurrent(ctx, r, want)
	}
	if shrunk, err := d.shrinkOld(ctx, r); shrunk || err != nil {
		return err
	}
	if r.complete(r.status(d.now())) {
		return d.trimHistory(ctx, r)
	}
	return nil
}

// recreate stops every old pod before it starts the first new one.
func (d *deployment) recreate(ctx context.Context, r *rollout) error {
	stopping := false
	for i, rs := range r.old {
		if *rs.Spec.Replicas == 0 {
			continue
		}
		stopping = true
		resized, err := d.resize(ctx, r, rs, 0)
		if err != nil {
			return err
		}
		r.old[i] = resized
	}
	if running, err := d.podsLeft(r.old); stopping || running || err != nil {
		return err
	}
	if err := d.ensureCurrent(ctx, r); err != nil {
		return err
	}
	if *r.current.Spec.Replicas != *r.Spec.Replicas {
		return d.resizeCurrent(ctx, r, *r.Spec.Replicas)
	}
	if r.complete(r.status(d.now())) {
		return d.trimHistory(ctx, r)
	}
	return nil
}

// podsLeft says whether a pod of the ReplicaSets still exists and has not ended; one that is terminating still runs.
func (d *deployment) podsLeft(sets []*appsv1.ReplicaSet) (bool, error) {
	for _, rs := range sets {
		pods, err := indexed[*corev1.Pod](d.pods, byController, string(rs.UID))
		if err != nil {
			return false, err
		}
		for _, pod := range pods {
			if !podTerminal(pod) {
				return true, nil
			}
		}
	}
	return false, nil
}
