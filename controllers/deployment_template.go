package controllers

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
	"k8s.io/utils/ptr"
)

// Annotations that kubectl reads: `rollout history` lists the revisions, `rollout undo` copies the template of one of them
// back into the Deployment, which makes its ReplicaSet the current one again under the next revision number.
const (
	revisionAnnotation        = "deployment.kubernetes.io/revision"
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	desiredAnnotation         = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation             = "deployment.kubernetes.io/max-replicas"
)

// divide finds the ReplicaSet of the present template and puts the others, oldest first, into old.
func (r *rollout) divide(sets []*appsv1.ReplicaSet) {
	slices.SortFunc(sets, byAge)
	r.current, r.old = nil, nil
	for _, rs := range sets {
		if r.current == nil && sameTemplate(&rs.Spec.Template, &r.Spec.Template) {
			r.current = rs // the oldest, if there should ever be two
		} else {
			r.old = append(r.old, rs)
		}
	}
}

func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// sameTemplate ignores the hash label, which the Deployment adds to its ReplicaSets' templates.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// templateHash names a ReplicaSet after its template, so that creating it twice fails instead of making two. After a
// collision with somebody else's ReplicaSet the count changes the hash.
func templateHash(template *corev1.PodTemplateSpec, collisions *int32) string {
	hash := fnv.New32a()
	fmt.Fprint(hash, dump.ForHash(template))
	if collisions != nil {
		hash.Write(binary.LittleEndian.AppendUint32(nil, uint32(*collisions)))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(hash.Sum32()), 10))
}

// ensureCurrent makes sure that the template has a ReplicaSet, and that it and the Deployment carry the latest revision.
func (d *deployment) ensureCurrent(ctx context.Context, r *rollout) error {
	next := strconv.FormatInt(latestRevision(r.old)+1, 10)
	if r.current == nil {
		if err := d.createSet(ctx, r, next); err != nil {
			return err
		}
	} else if err := d.refreshSet(ctx, r, next); err != nil {
		return err
	}
	return d.setRevision(ctx, r, r.current.Annotations[revisionAnnotation])
}

func (d *deployment) createSet(ctx context.Context, r *rollout, revision string) error {
	rs := r.newSet(revision)
	created, err := d.client.AppsV1().ReplicaSets(rs.Namespace).Create(ctx, rs, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return d.resolveCollision(ctx, r, rs.Name)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ErrDeleting
	case err != nil:
		return d.failedCreate(ctx, r, rs.Name, err)
	}
	r.current, r.created = created, true
	if *created.Spec.Replicas > 0 {
		d.recorder.Eventf(r.Deployment, corev1.EventTypeNormal, "ScalingReplicaSet",
			"Scaled up replica set %s from 0 to %d", created.Name, *created.Spec.Replicas)
	}
	return nil
}

// newSet is the ReplicaSet of the present template, at the size that the strategy allows at once.
func (r *rollout) newSet(revision string) *appsv1.ReplicaSet {
	hash := templateHash(&r.Spec.Template, r.Status.CollisionCount)
	template := r.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, hash)
	selector := r.Spec.Selector.DeepCopy()
	selector.MatchLabels = withLabel(selector.MatchLabels, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name + "-" + hash, Labels: maps.Clone(template.Labels), Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r.Deployment, deploymentKind)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(r.newReplicas()), MinReadySeconds: r.Spec.MinReadySeconds, Selector: selector, Template: *template,
		},
	}
	copyAnnotations(r.Deployment, rs)
	rs.Annotations[revisionAnnotation] = revision
	r.noteSize(rs)
	return rs
}

func withLabel(set map[string]string, hash string) map[string]string {
	set = maps.Clone(set)
	if set == nil {
		set = map[string]string{}
	}
	set[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return set
}

// resolveCollision decides whether the ReplicaSet that has our name is ours, only not in the cache yet. If it belongs to
// somebody else, for instance to a deleted Deployment of the same name that the garbage collector has not reached, the
// collision count goes up and with it the hash and the name: waiting could take for ever.
func (d *deployment) resolveCollision(ctx context.Context, r *rollout, name string) error {
	existing, err := d.client.AppsV1().ReplicaSets(r.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if metav1.IsControlledBy(existing, r.Deployment) && sameTemplate(&existing.Spec.Template, &r.Spec.Template) {
		r.current = existing
		return nil
	}
	r.Status.CollisionCount = ptr.To(ptr.Deref(r.Status.CollisionCount, 0) + 1)
	if _, err := d.client.AppsV1().Deployments(r.Namespace).UpdateStatus(ctx, r.Deployment, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrHashCollision, name)
}

// failedCreate shows the failure in the Deployment's conditions and passes it on.
func (d *deployment) failedCreate(ctx context.Context, r *rollout, name string, cause error) error {
	message := fmt.Sprintf("Failed to create new replica set %q: %v", name, cause)
	d.recorder.Event(r.Deployment, corev1.EventTypeWarning, reasonCreateFailed, message)
	if hasDeadline(r.Deployment) {
		setCondition(&r.Status, progressing(corev1.ConditionFalse, reasonCreateFailed, message, d.now()))
		if _, err := d.client.AppsV1().Deployments(r.Namespace).UpdateStatus(ctx, r.Deployment, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return cause
}

// refreshSet brings annotations and minReadySeconds of the current ReplicaSet up to date. When the template of an old
// revision comes back (a rollback), its ReplicaSet gets the next number and remembers the former one.
func (d *deployment) refreshSet(ctx context.Context, r *rollout, next string) error {
	rs := r.current.DeepCopy()
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	copyAnnotations(r.Deployment, rs)
	if was := rs.Annotations[revisionAnnotation]; revisionNumber(was) < revisionNumber(next) {
		if was != "" {
			history := slices.DeleteFunc(strings.Split(rs.Annotations[revisionHistoryAnnotation], ","), func(s string) bool { return s == "" })
			rs.Annotations[revisionHistoryAnnotation] = strings.Join(append(history, was), ",")
		}
		rs.Annotations[revisionAnnotation] = next
	}
	rs.Spec.MinReadySeconds = r.Spec.MinReadySeconds
	if maps.Equal(rs.Annotations, r.current.Annotations) && rs.Spec.MinReadySeconds == r.current.Spec.MinReadySeconds {
		return nil
	}
	updated, err := d.client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, rs, metav1.UpdateOptions{})
	if err == nil {
		r.current = updated
	}
	return err
}

// setRevision shows the current revision on the Deployment. It is a patch of that one annotation: it cannot conflict with
// a user's edit. It goes through the status, where an annotation does not raise the generation: the user has not asked
// for anything new.
func (d *deployment) setRevision(ctx context.Context, r *rollout, revision string) error {
	if revision == "" || r.Annotations[revisionAnnotation] == revision {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": r.UID, "annotations": map[string]string{revisionAnnotation: revision},
	}})
	if err != nil {
		return err
	}
	patched, err := d.client.AppsV1().Deployments(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	r.Annotations, r.ResourceVersion = patched.Annotations, patched.ResourceVersion
	return nil
}

// copyAnnotations takes the Deployment's annotations over to the ReplicaSet (kubernetes.io/change-cause becomes part of
// the history that way), except those that belong to one of the two.
func copyAnnotations(from *appsv1.Deployment, to *appsv1.ReplicaSet) {
	for key, value := range from.Annotations {
		switch key {
		case corev1.LastAppliedConfigAnnotation, revisionAnnotation, revisionHistoryAnnotation, desiredAnnotation, maxAnnotation,
			appsv1.DeprecatedRollbackTo:
		default:
			to.Annotations[key] = value
		}
	}
}

func revisionNumber(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0 // absent or edited by hand: older than everything
	}
	return n
}

func latestRevision(sets []*appsv1.ReplicaSet) (latest int64) {
	for _, rs := range sets {
		latest = max(latest, revisionNumber(rs.Annotations[revisionAnnotation]))
	}
	return latest
}

// trimHistory deletes the oldest of the old ReplicaSets beyond spec.revisionHistoryLimit, but none that still has pods.
func (d *deployment) trimHistory(ctx context.Context, r *rollout) error {
	if r.Spec.RevisionHistoryLimit == nil {
		return nil
	}
	history := slices.DeleteFunc(slices.Clone(r.old), func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	slices.SortStableFunc(history, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Compare(revisionNumber(a.Annotations[revisionAnnotation]), revisionNumber(b.Annotations[revisionAnnotation]))
	})
	surplus := len(history) - int(*r.Spec.RevisionHistoryLimit)
	for _, rs := range history[:max(surplus, 0)] {
		if rs.Status.Replicas != 0 || *rs.Spec.Replicas != 0 || rs.Generation > rs.Status.ObservedGeneration {
			continue
		}
		err := d.client.AppsV1().ReplicaSets(rs.Namespace).Delete(ctx, rs.Name, exactly(rs))
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
