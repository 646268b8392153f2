package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// burstReplicas is how many pods one reconcile creates or deletes at most; parallelWrites how many at a time.
const (
	burstReplicas  = 500
	parallelWrites = 16
)

// staleRetry is a safety net: an owner that waits for the cache is woken by the event it waits for, unless a relist
// swallowed it.
const staleRetry = time.Second

// replicaSet keeps as many pods as spec.replicas says. ReplicationControllers have one, too (replicakind.go).
type replicaSet struct {
	replicaKind
	client   kubernetes.Interface
	pods     cache.Indexer
	writes   *ownWrites
	recorder record.EventRecorder
	now      func() time.Time
}

func addReplicaSet(m *manager) error {
	sets := m.shared.Apps().V1().ReplicaSets().Informer()
	c, err := addReplicas(m, "replicaset", func(client kubernetes.Interface) replicaKind { return replicaSets(m, client) })
	if err == nil {
		watch(c, sets, requestFor[*appsv1.ReplicaSet])
	}
	return err
}

// addReplicas starts the controller of one kind, which the caller has watch the objects of its kind.
func addReplicas(m *manager, name string, kind func(kubernetes.Interface) replicaKind) (*controller, error) {
	client, err := m.client(name)
	if err != nil {
		return nil, err
	}
	pods := m.shared.Core().V1().Pods().Informer()
	if err := indexByController(pods); err != nil {
		return nil, err
	}
	r := &replicaSet{
		replicaKind: kind(client), client: client, pods: pods.GetIndexer(),
		writes: newOwnWrites(), recorder: m.recorder(name), now: time.Now,
	}
	c := m.add(name, 5, r)
	watch(c, pods, r.requestsForPod)
	return c, nil
}

// requestsForPod wakes the pod's ReplicaSet or, for an orphan, every one that might adopt it.
func (r *replicaSet) requestsForPod(pod *corev1.Pod) []Request {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return requestForController[*corev1.Pod](r.kind.Kind)(pod)
	}
	if len(pod.Labels) == 0 {
		return nil // a ReplicaSet's selector is never empty
	}
	candidates, err := r.list(pod.Namespace)
	if err != nil {
		return nil
	}
	var requests []Request
	for _, rs := range candidates {
		if selects(rs.Spec.Selector, pod.Labels) {
			requests = append(requests, requestFor(rs)...)
		}
	}
	return requests
}

func (r *replicaSet) Reconcile(ctx context.Context, req Request) (Result, error) {
	rs, err := r.get(req.Namespace, req.Name)
	if apierrors.IsNotFound(err) {
		r.writes.forget(req.NamespacedName)
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return Result{}, nil // validation does not let it in; nothing to do until it is changed
	}
	if !r.writes.caughtUp(req.NamespacedName, rs.UID, r.pods) {
		return Result{RequeueAfter: staleRetry}, nil
	}
	owned, err := r.claimPods(ctx, rs, selector)
	if err != nil {
		return Result{}, err
	}
	active, terminating := r.split(req.NamespacedName, rs, owned)
	var manageErr error
	if rs.DeletionTimestamp == nil {
		manageErr = r.manage(ctx, rs, active)
	}
	wait, err := r.updateStatus(ctx, rs, active, terminating, manageErr)
	if manageErr != nil {
		return Result{}, manageErr
	}
	return Result{RequeueAfter: wait}, err
}

func (r *replicaSet) claimPods(ctx context.Context, rs *appsv1.ReplicaSet, selector labels.Selector) ([]*corev1.Pod, error) {
	candidates, err := indexed[*corev1.Pod](r.pods, byController, string(rs.UID), orphansOf(rs.Namespace))
	if err != nil {
		return nil, err
	}
	return claimer[*corev1.Pod]{
		owner: rs, kind: r.kind, selector: selector,
		reread: func(ctx context.Context) (metav1.Object, error) { return r.reread(ctx, rs.Namespace, rs.Name) },
		patch: func(ctx context.Context, pod *corev1.Pod, patch []byte) error {
			_, err := r.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}.claim(ctx, candidates)
}

// split separates the pods that count from those on their way out. Pods that we deleted a moment ago count as going even if
// the cache does not know it yet.
func (r *replicaSet) split(name types.NamespacedName, rs *appsv1.ReplicaSet, owned []*corev1.Pod) (active []*corev1.Pod, terminating int32) {
	alive := sets.New[types.UID]()
	for _, pod := range owned {
		if pod.DeletionTimestamp == nil {
			alive.Insert(pod.UID)
		}
	}
	going := r.writes.stillShown(name, rs.UID, alive)
	for _, pod := range owned {
		switch {
		case podTerminal(pod):
		case pod.DeletionTimestamp != nil || going.Has(pod.UID):
			terminating++
		default:
			active = append(active, pod)
		}
	}
	return active, terminating
}

func (r *replicaSet) manage(ctx context.Context, rs *appsv1.ReplicaSet, active []*corev1.Pod) error {
	switch missing := int(*rs.Spec.Replicas) - len(active); {
	case missing > 0:
		return r.createPods(ctx, rs, min(missing, burstReplicas))
	case missing < 0:
		return r.deletePods(ctx, rs, active, min(-missing, burstReplicas))
	}
	return nil
}

// createPods starts slowly: one pod, then two, four, …, and stops at the first failure. A quota or an admission rule that
// refuses one pod refuses all, and there is no point in asking five hundred times.
func (r *replicaSet) createPods(ctx context.Context, rs *appsv1.ReplicaSet, count int) error {
	for batch := 1; count > 0; batch = min(2*batch, parallelWrites) {
		size := min(batch, count)
		var group errgroup.Group // not WithContext: cancelling the others would leave their outcome unknown
		for range size {
			group.Go(func() error { return r.createPod(ctx, rs) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		count -= size
	}
	return nil
}

func (r *replicaSet) createPod(ctx context.Context, rs *appsv1.ReplicaSet) error {
	pod, err := r.client.CoreV1().Pods(rs.Namespace).Create(ctx, podFromTemplate(rs, r.kind), metav1.CreateOptions{})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the ReplicaSet goes with its namespace
	}
	if err != nil && ctx.Err() == nil {
		r.recorder.Eventf(rs, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
	}
	if err != nil {
		return fmt.Errorf("create a pod: %w", err)
	}
	r.writes.recordCreate(types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name}, rs.UID, pod.ResourceVersion)
	r.recorder.Eventf(rs, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
	return nil
}

func podFromTemplate(rs *appsv1.ReplicaSet, kind schema.GroupVersionKind) *corev1.Pod {
	template := rs.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rs.Namespace, GenerateName: podNamePrefix(rs.Name),
			Labels: template.Labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, kind)},
		},
		Spec: template.Spec,
	}
}

// podNamePrefix leaves out the dash when the name would end in a dot otherwise (no name part may end in "." or "-.").
func podNamePrefix(owner string) string {
	if strings.HasSuffix(owner, ".") {
		return owner
	}
	return owner + "-"
}

func (r *replicaSet) deletePods(ctx context.Context, rs *appsv1.ReplicaSet, active []*corev1.Pod, count int) error {
	if count < len(active) {
		neighbours, err := r.neighbours(rs)
		if err != nil {
			return err
		}
		deletionOrder(active, neighbours, r.now())
	}
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, pod := range active[:count] {
		group.Go(func() error { return r.deletePod(ctx, rs, pod) })
	}
	return group.Wait()
}

func (r *replicaSet) deletePod(ctx context.Context, rs *appsv1.ReplicaSet, pod *corev1.Pod) error {
	err := r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, exactly(pod))
	if err != nil && !apierrors.IsNotFound(err) {
		r.recorder.Eventf(rs, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	r.writes.recordDelete(types.NamespacedName{Namespace: rs.Namespace, Name: rs.Name}, rs.UID, pod.UID)
	if err == nil {
		r.recorder.Eventf(rs, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
	}
	return nil
}

// neighbours counts the active pods per node of all ReplicaSets with the same controller, that is of the whole Deployment
// in the middle of a rollout.
func (r *replicaSet) neighbours(rs *appsv1.ReplicaSet) (map[string]int, error) {
	family, err := r.family(rs)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, member := range family {
		pods, err := indexed[*corev1.Pod](r.pods, byController, string(member.UID))
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			if podActive(pod) {
				count[pod.Spec.NodeName]++
			}
		}
	}
	return count, nil
}
