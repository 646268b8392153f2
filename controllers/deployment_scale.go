package controllers

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resize sets the size of a ReplicaSet and returns the new version. The update carries the resourceVersion that the
// decision was taken on.
func (d *deployment) resize(ctx context.Context, r *rollout, rs *appsv1.ReplicaSet, replicas int32) (*appsv1.ReplicaSet, error) {
	before := *rs.Spec.Replicas
	update := rs.DeepCopy()
	update.Spec.Replicas = &replicas
	changedNote := r.noteSize(update)
	if before == replicas && !changedNote {
		return rs, nil
	}
	updated, err := d.client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	if before != replicas {
		direction := "up"
		if before > replicas {
			direction = "down"
		}
		d.recorder.Eventf(r.Deployment, corev1.EventTypeNormal, "ScalingReplicaSet",
			"Scaled %s replica set %s from %d to %d", direction, rs.Name, before, replicas)
	}
	return updated, nil
}

func (d *deployment) resizeCurrent(ctx context.Context, r *rollout, replicas int32) error {
	resized, err := d.resize(ctx, r, r.current, replicas)
	if err == nil {
		r.current = resized
	}
	return err
}

// noteSize writes the Deployment's desired and maximal size onto the ReplicaSet. Comparing them later with the spec tells a
// change of scale from a rollout, and gives the proportions before the change.
func (r *rollout) noteSize(rs *appsv1.ReplicaSet) (changed bool) {
	surge, _ := r.limits()
	for key, n := range map[string]int32{desiredAnnotation: *r.Spec.Replicas, maxAnnotation: *r.Spec.Replicas + surge} {
		value := strconv.Itoa(int(n))
		if rs.Annotations[key] == value {
			continue
		}
		if rs.Annotations == nil {
			rs.Annotations = map[string]string{}
		}
		rs.Annotations[key], changed = value, true
	}
	return changed
}

// notedSize reads such an annotation.
func notedSize(rs *appsv1.ReplicaSet, key string) (int32, bool) {
	n, err := strconv.ParseInt(rs.Annotations[key], 10, 32)
	return int32(n), err == nil
}

// replicasChanged: a ReplicaSet with pods was sized for another number of replicas than the spec has now.
func (r *rollout) replicasChanged() bool {
	for _, rs := range active(r.all()) {
		if noted, ok := notedSize(rs, desiredAnnotation); ok && noted != *r.Spec.Replicas {
			return true
		}
	}
	return false
}

func active(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return slices.DeleteFunc(slices.Clone(sets), func(rs *appsv1.ReplicaSet) bool { return *rs.Spec.Replicas == 0 })
}

// scale follows a change of spec.replicas. Outside a rollout one ReplicaSet takes it all. In the middle of one, each gets
// its share, so that the ratio of old to new pods, and with it the risk, stays what it was.
func (d *deployment) scale(ctx context.Context, r *rollout) error {
	if only := r.soleSet(); only != nil {
		return d.replace(ctx, r, only, *r.Spec.Replicas)
	}
	if r.saturated() {
		for _, rs := range active(r.old) {
			if err := d.replace(ctx, r, rs, 0); err != nil {
				return err
			}
		}
		return nil
	}
	if r.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	surge, _ := r.limits()
	for rs, size := range shares(active(r.all()), *r.Spec.Replicas, surge, r.Status.Replicas) {
		if err := d.replace(ctx, r, rs, size); err != nil {
			return err
		}
	}
	return nil
}

// replace resizes a ReplicaSet wherever it stands in the rollout.
func (d *deployment) replace(ctx context.Context, r *rollout, rs *appsv1.ReplicaSet, replicas int32) error {
	resized, err := d.resize(ctx, r, rs, replicas)
	if err != nil {
		return err
	}
	if rs == r.current {
		r.current = resized
		return nil
	}
	r.old[slices.Index(r.old, rs)] = resized
	return nil
}

// soleSet is the one ReplicaSet that has pods or, when none has, the current or else the latest; nil when several have.
func (r *rollout) soleSet() *appsv1.ReplicaSet {
	switch withPods := active(r.all()); {
	case len(withPods) == 1:
		return withPods[0]
	case len(withPods) > 1:
		return nil
	case r.current != nil:
		return r.current
	case len(r.old) > 0:
		return r.old[len(r.old)-1]
	}
	return nil
}

// saturated: the current ReplicaSet has all replicas that were desired, and they are available.
func (r *rollout) saturated() bool {
	if r.current == nil {
		return false
	}
	noted, ok := notedSize(r.current, desiredAnnotation)
	want := *r.Spec.Replicas
	return ok && noted == want && *r.current.Spec.Replicas == want && r.current.Status.AvailableReplicas == want
}

// shares spreads replicas + surge over the ReplicaSets in proportion to their sizes. Growing, the largest (and among equals
// the newest) is served first, shrinking the largest and oldest; what rounding leaves over goes to the first.
func shares(sets []*appsv1.ReplicaSet, replicas, surge, statusReplicas int32) map[*appsv1.ReplicaSet]int32 {
	allowed := int32(0)
	if replicas > 0 {
		allowed = replicas + surge
	}
	toAdd := allowed - specReplicas(sets)
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		age := byAge(a, b)
		if toAdd > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), age)
	})
	sizes, added := map[*appsv1.ReplicaSet]int32{}, int32(0)
	for _, rs := range sets {
		share := boundedShare(rs, replicas, surge, statusReplicas, toAdd, toAdd-added)
		sizes[rs] = *rs.Spec.Replicas + share
		added += share
	}
	if len(sets) > 0 {
		sizes[sets[0]] = max(0, sizes[sets[0]]+toAdd-added)
	}
	return sizes
}

// boundedShare is by how much one ReplicaSet changes, never more than what is left to change.
func boundedShare(rs *appsv1.ReplicaSet, replicas, surge, statusReplicas, toAdd, left int32) int32 {
	if *rs.Spec.Replicas == 0 || toAdd == 0 || left == 0 {
		return 0
	}
	change := -*rs.Spec.Replicas
	if replicas > 0 {
		before, ok := notedSize(rs, maxAnnotation)
		if !ok || before == 0 {
			before = max(statusReplicas, 1) // the annotation is missing: what the Deployment had is the best guess
		}
		change = int32(math.Round(float64(*rs.Spec.Replicas)*float64(replicas+surge)/float64(before))) - *rs.Spec.Replicas
	}
	if toAdd > 0 {
		return min(change, left)
	}
	return max(change, left)
}
