package registry

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func daemonSets() *Resource {
	r := newRow[appsv1.DaemonSet, appsv1.DaemonSetList](appsv1.SchemeGroupVersion, "daemonsets", "DaemonSet")
	r.ShortNames, r.Categories = []string{"ds"}, []string{"all"}
	r.Strategy = Strategy{
		Default: defaulter(defaultDaemonSet),
		PrepareForCreate: preparer(func(d *appsv1.DaemonSet) {
			setTemplateGeneration(d, 1)
			dropGated(&d.Spec.Template.Spec)
		}),
		PrepareForUpdate: updatePreparer(func(d, old *appsv1.DaemonSet) {
			dropGated(&d.Spec.Template.Spec)
			countTemplates(d, old)
		}),
		Validate:        validator(validateDaemonSet),
		UpdateRulesOnly: true,
		Warnings:        templateWarnings(templatePath, func(d *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &d.Spec.Template }),
		ValidateUpdate: updateValidator(func(d, old *appsv1.DaemonSet) field.ErrorList {
			faults := immutable(specPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
			return append(faults, validateDaemonSet(d)...)
		}),
	}
	status := statusOf(r, func(d, old *appsv1.DaemonSet) {
		d.Spec = old.Spec
		countTemplates(d, old)
	})
	status.Validate = validateDaemonSetStatus
	r.Subresources = []Subresource{status}
	r.Columns = columns(
		[]string{"Name", "Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer", "Node Selector", "Age"},
		"Containers", "Images", "Selector")
	r.Row = cells(daemonSetRow)
	return r
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	spec := &d.Spec
	if _, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		setTemplateGeneration(d, 0) // who writes the object owns it, as in Kubernetes
	}
	defaultPodTemplate(&spec.Template)
	setPointer(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setPointer(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setPointer(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPointer(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
}

// setTemplateGeneration: a DaemonSet counts the versions of its template in an annotation, which its
// controller writes to the pods. Clients cannot set it.
func setTemplateGeneration(d *appsv1.DaemonSet, n int64) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, appsv1.DeprecatedTemplateGeneration, fmt.Sprint(n))
}

func countTemplates(d, old *appsv1.DaemonSet) {
	var n int64
	_, _ = fmt.Sscan(old.Annotations[appsv1.DeprecatedTemplateGeneration], &n) // not a number: start again
	if !apiequality.Semantic.DeepEqual(d.Spec.Template, old.Spec.Template) {
		n++
	}
	setTemplateGeneration(d, n)
}

func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	w := workload{d.Spec.Selector, &d.Spec.Template, "daemonset", "DaemonSet"}
	var faults field.ErrorList
	if w.selector != nil { // that it must be there is a declared rule
		faults = w.validateSelector()
	}
	template := specPath.Child("template")
	faults = append(faults, w.selected(template)...)
	faults = append(faults, validatePodTemplate(template, w.template)...)
	faults = append(faults, w.runsForever(template.Child("spec"))...)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), d.Spec.MinReadySeconds)...)
	faults = append(faults, validateDaemonRollout(specPath.Child("updateStrategy"), &d.Spec.UpdateStrategy)...)
	return append(faults, notNegative(specPath.Child("revisionHistoryLimit"), *d.Spec.RevisionHistoryLimit)...)
}

// validateDaemonRollout: pods are either taken away before others come, or come before others are taken away.
func validateDaemonRollout(path *field.Path, s *appsv1.DaemonSetUpdateStrategy) field.ErrorList {
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, shown(s), []appsv1.DaemonSetUpdateStrategyType{
			appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType,
		})}
	}
	at := path.Child("rollingUpdate")
	unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
	faults := share(at.Child("maxUnavailable"), unavailable)
	faults = append(faults, share(at.Child("maxSurge"), surge)...)
	faults = append(faults, atMostAll(at.Child("maxUnavailable"), unavailable)...)
	faults = append(faults, atMostAll(at.Child("maxSurge"), surge)...)
	switch before, after := isNought(unavailable), isNought(surge); {
	case before && after:
		faults = append(faults, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	case !before && !after:
		faults = append(faults, field.Invalid(at.Child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero"))
	}
	return faults
}

func validateDaemonSetStatus(_ context.Context, obj, old runtime.Object) field.ErrorList {
	s, was := &obj.(*appsv1.DaemonSet).Status, &old.(*appsv1.DaemonSet).Status
	faults := counters(counter{"currentNumberScheduled", int64(s.CurrentNumberScheduled)}, counter{"numberMisscheduled", int64(s.NumberMisscheduled)},
		counter{"desiredNumberScheduled", int64(s.DesiredNumberScheduled)}, counter{"numberReady", int64(s.NumberReady)},
		counter{"observedGeneration", s.ObservedGeneration}, counter{"updatedNumberScheduled", int64(s.UpdatedNumberScheduled)},
		counter{"numberAvailable", int64(s.NumberAvailable)}, counter{"numberUnavailable", int64(s.NumberUnavailable)},
		optional("collisionCount", s.CollisionCount))
	return append(faults, onlyGrows("collisionCount", s.CollisionCount, was.CollisionCount)...)
}

func daemonSetRow(d *appsv1.DaemonSet, now time.Time) []any {
	names, images := containerCells(d.Spec.Template.Spec.Containers)
	s := d.Status
	return []any{
		d.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady), int64(s.UpdatedNumberScheduled), int64(s.NumberAvailable),
		labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), age(&d.ObjectMeta, now), names, images, metav1.FormatLabelSelector(d.Spec.Selector),
	}
}
