package controllers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leftovers is what one attempt to empty a namespace could not remove.
type leftovers struct {
	discoveryErr error
	deleteErrs   []error
	resources    map[string]int // "configmaps", "widgets.example.com": how many are left
	finalizers   map[string]int // finalizer: on how many objects it holds
}

func newLeftovers() *leftovers {
	return &leftovers{resources: map[string]int{}, finalizers: map[string]int{}}
}

func (l *leftovers) add(res schema.GroupResource, items []metav1.PartialObjectMetadata) {
	if len(items) == 0 {
		return
	}
	l.resources[res.String()] += len(items)
	for _, item := range items {
		for _, finalizer := range item.Finalizers {
			l.finalizers[finalizer]++
		}
	}
}

func (l *leftovers) nothing() bool {
	return l.discoveryErr == nil && len(l.deleteErrs) == 0 && len(l.resources) == 0
}

// conditions tells people what keeps the namespace, in the types and reasons of Kubernetes (AP-40 reads them).
func (l *leftovers) conditions(status *corev1.NamespaceStatus, now time.Time) {
	set := func(kind corev1.NamespaceConditionType, bad bool, badReason, badMessage, goodReason, goodMessage string) {
		next := corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionFalse, Reason: goodReason, Message: goodMessage}
		if bad {
			next.Status, next.Reason, next.Message = corev1.ConditionTrue, badReason, badMessage
		}
		next.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		setNamespaceCondition(status, next)
	}
	set(corev1.NamespaceDeletionDiscoveryFailure, l.discoveryErr != nil,
		"DiscoveryFailed", fmt.Sprintf("Discovery failed for some groups: %v", l.discoveryErr),
		"ResourcesDiscovered", "All resources successfully discovered")
	set(corev1.NamespaceDeletionContentFailure, len(l.deleteErrs) > 0,
		"ContentDeletionFailed",
		fmt.Sprintf("Failed to delete all resource types, %d remaining: %v", len(l.deleteErrs), errors.Join(l.deleteErrs...)),
		"ContentDeleted", "All content successfully deleted, may be waiting on finalization")
	set(corev1.NamespaceContentRemaining, len(l.resources) > 0,
		"SomeResourcesRemain", "Some resources are remaining: "+counts(l.resources, "%s has %d resource instances"),
		"ContentRemoved", "All content successfully removed")
	set(corev1.NamespaceFinalizersRemaining, len(l.finalizers) > 0,
		"SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+counts(l.finalizers, "%s in %d resource instances"),
		"ContentHasNoFinalizers", "All content-preserving finalizers finished")
}

func counts(of map[string]int, format string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf(format, key, of[key]))
	}
	return strings.Join(parts, ", ")
}

func setNamespaceCondition(status *corev1.NamespaceStatus, next corev1.NamespaceCondition) {
	for i, current := range status.Conditions {
		if current.Type == next.Type {
			if current.Status == next.Status {
				next.LastTransitionTime = current.LastTransitionTime
			}
			status.Conditions[i] = next
			return
		}
	}
	status.Conditions = append(status.Conditions, next)
}
