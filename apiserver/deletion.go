package apiserver

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// stepDeletion changes obj as a request to delete it at that moment demands, and reports whether
// nothing holds it any more.
func (t *target) stepDeletion(obj runtime.Object, options *metav1.DeleteOptions, now time.Time) (done bool) {
	m := accessor(obj)
	strategy := &t.resource.Strategy
	begun, before := m.GetDeletionTimestamp() != nil, graceLeft(m)
	if begun && !t.shorten(obj, options, now) {
		return false // it is being deleted already, and no faster than before
	}
	m.SetFinalizers(cascadeFinalizers(m.GetFinalizers(), options, strategy.OrphanByDefault))
	grace := graceLeft(m)
	if !begun && strategy.GracePeriod != nil {
		grace = strategy.GracePeriod(obj, askedGrace(options))
	}
	kept := strategy.KeepOnDelete != nil && strategy.KeepOnDelete(obj)
	if strategy.GracePeriod != nil && !(begun && before == 0) {
		kept = true // it is marked first
	}
	if grace == 0 && len(m.GetFinalizers()) == 0 && !kept {
		return true
	}
	if !begun {
		markDeleting(m, grace, now)
		if strategy.KeepOnDelete != nil {
			m.SetDeletionGracePeriodSeconds(nil) // nothing waits for an end of it
		}
		if strategy.PrepareForDelete != nil {
			strategy.PrepareForDelete(obj)
		}
	}
	return false
}

// shorten brings the end of a running grace period forward. It can only get earlier, and not earlier
// than now. It reports whether there is anything left to do in this step.
func (t *target) shorten(obj runtime.Object, options *metav1.DeleteOptions, now time.Time) bool {
	m := accessor(obj)
	left := graceLeft(m)
	if left == 0 {
		return true
	}
	asked := askedGrace(options)
	if asked == nil || *asked >= left {
		return false
	}
	grace := *asked
	end := m.GetDeletionTimestamp().Add(time.Duration(grace-left) * time.Second)
	if end.Before(now) {
		end = now
		if grace != 0 {
			grace = 1 // still graceful: the node agent ends it
		}
	}
	m.SetDeletionTimestamp(&metav1.Time{Time: end.UTC().Truncate(time.Second)})
	m.SetDeletionGracePeriodSeconds(&grace)
	return true
}

func graceLeft(m metav1.Object) int64 {
	if grace := m.GetDeletionGracePeriodSeconds(); grace != nil {
		return *grace
	}
	return 0
}

// askedGrace is the client's wish; below zero means one second, as in Kubernetes.
func askedGrace(options *metav1.DeleteOptions) *int64 {
	asked := options.GracePeriodSeconds
	if asked != nil && *asked < 0 {
		one := int64(1)
		return &one
	}
	return asked
}

func markDeleting(m metav1.Object, grace int64, now time.Time) {
	m.SetDeletionTimestamp(&metav1.Time{Time: now.Add(time.Duration(grace) * time.Second).UTC().Truncate(time.Second)})
	m.SetDeletionGracePeriodSeconds(&grace)
	if m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
}

// cascadeFinalizers turns the propagation policy into the finalizers that the garbage collector
// works off: "orphan" or "foregroundDeletion", or neither for background deletion.
func cascadeFinalizers(present []string, options *metav1.DeleteOptions, orphanByDefault bool) []string {
	want := ""
	switch {
	case options.OrphanDependents != nil: //nolint:staticcheck // old clients send it
		if *options.OrphanDependents { //nolint:staticcheck // as above
			want = metav1.FinalizerOrphanDependents
		}
	case options.PropagationPolicy == nil:
		if orphanByDefault && !slices.Contains(present, metav1.FinalizerOrphanDependents) && !slices.Contains(present, metav1.FinalizerDeleteDependents) {
			return append(slices.Clone(present), metav1.FinalizerOrphanDependents)
		}
		return present // finalizers that say so already have their way
	case *options.PropagationPolicy == metav1.DeletePropagationOrphan:
		want = metav1.FinalizerOrphanDependents
	case *options.PropagationPolicy == metav1.DeletePropagationForeground:
		want = metav1.FinalizerDeleteDependents
	}
	var out []string
	for _, f := range present {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			out = append(out, f)
		}
	}
	if want != "" {
		out = append(out, want)
	}
	return out
}
