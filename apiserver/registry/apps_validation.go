package registry

import (
	"context"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A workload is what the rules for kinds with a pod template have in common.
type workload struct {
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	// kind and deadline are how Kubernetes' messages call it: "empty selector is invalid for KIND", "…Seconds in
	// DEADLINE is not Supported".
	kind, deadline string
}

// validate: the selector finds the pods of the template, and these are started again when they end.
func (w workload) validate() field.ErrorList {
	faults := w.validateSelector()
	return append(faults, w.validateTemplate(specPath.Child("template"))...)
}

func (w workload) validateSelector() field.ErrorList {
	path := specPath.Child("selector")
	if w.selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	faults := metavalidation.ValidateLabelSelector(w.selector, metavalidation.LabelSelectorValidationOptions{}, path)
	if len(w.selector.MatchLabels)+len(w.selector.MatchExpressions) == 0 {
		faults = append(faults, field.Invalid(path, w.selector, "empty selector is invalid for "+w.kind))
	}
	return faults
}

// validateTemplate leaves the template alone where the selector cannot be read, as Kubernetes does.
func (w workload) validateTemplate(path *field.Path) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector(w.selector); err != nil {
		detail := "invalid label selector"
		if w.kind == "statefulset" {
			detail = ""
		}
		return field.ErrorList{field.Invalid(specPath.Child("selector"), w.selector, detail)}
	}
	faults := w.selected(path)
	faults = append(faults, validatePodTemplate(path, w.template)...)
	return append(faults, w.runsForever(path.Child("spec"))...)
}

func (w workload) selected(path *field.Path) field.ErrorList {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil || selector.Matches(labels.Set(w.template.Labels)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("metadata", "labels"), w.template.Labels, "`selector` does not match template `labels`")}
}

func (w workload) runsForever(path *field.Path) field.ErrorList {
	var faults field.ErrorList
	if policy := w.template.Spec.RestartPolicy; policy != corev1.RestartPolicyAlways {
		faults = append(faults, field.NotSupported(path.Child("restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if w.template.Spec.ActiveDeadlineSeconds != nil {
		faults = append(faults, field.Forbidden(path.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+w.deadline+" is not Supported"))
	}
	return faults
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	faults := notNegative(specPath.Child("replicas"), *spec.Replicas)
	faults = append(faults, workload{spec.Selector, &spec.Template, "deployment", "ReplicaSet"}.validate()...)
	faults = append(faults, validateRollout(specPath.Child("strategy"), &spec.Strategy)...)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), spec.MinReadySeconds)...)
	faults = append(faults, notNegative(specPath.Child("revisionHistoryLimit"), *spec.RevisionHistoryLimit)...)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		path := specPath.Child("progressDeadlineSeconds")
		faults = append(faults, notNegative(path, *deadline)...)
		if *deadline <= spec.MinReadySeconds {
			faults = append(faults, field.Invalid(path, *deadline, "must be greater than minReadySeconds"))
		}
	}
	return faults
}

func validateRollout(path *field.Path, s *appsv1.DeploymentStrategy) field.ErrorList {
	rolling := path.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
		faults := share(rolling.Child("maxUnavailable"), unavailable)
		faults = append(faults, share(rolling.Child("maxSurge"), surge)...)
		if isNought(unavailable) && isNought(surge) {
			faults = append(faults, field.Invalid(rolling.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
		}
		return append(faults, atMostAll(rolling.Child("maxUnavailable"), unavailable)...)
	}
	return field.ErrorList{field.NotSupported(path, shown(s), []appsv1.DeploymentStrategyType{
		appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType,
	})}
}

// share is a count or a percentage.
func share(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	if v.Type == intstr.String {
		return invalid(path, v, validation.IsValidPercent(v.StrVal))
	}
	return notNegative(path, v.IntVal)
}

func percent(v *intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return n, err == nil
}

// isNought: also a text that is no percentage counts as nothing.
func isNought(v *intstr.IntOrString) bool {
	if n, ok := percent(v); ok {
		return n == 0
	}
	return v.IntValue() == 0
}

func atMostAll(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	if n, ok := percent(v); ok && n > 100 {
		return field.ErrorList{field.Invalid(path, v, "must not be greater than 100%")}
	}
	return nil
}

func validateDeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	return immutable(specPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
}

func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	faults := notNegative(specPath.Child("replicas"), *rs.Spec.Replicas)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), rs.Spec.MinReadySeconds)...)
	// Kubernetes took the next words over from Deployments.
	return append(faults, workload{rs.Spec.Selector, &rs.Spec.Template, "deployment", "ReplicaSet"}.validate()...)
}

func validateReplicaSetUpdate(rs, old *appsv1.ReplicaSet) field.ErrorList {
	return immutable(specPath.Child("selector"), rs.Spec.Selector, old.Spec.Selector)
}

// validateReplicaSetStatus: no counter exceeds the number of pods.
func validateReplicaSetStatus(rs *appsv1.ReplicaSet) field.ErrorList {
	s := &rs.Status
	faults := counters(counter{"replicas", int64(s.Replicas)}, counter{"fullyLabeledReplicas", int64(s.FullyLabeledReplicas)},
		counter{"readyReplicas", int64(s.ReadyReplicas)}, counter{"availableReplicas", int64(s.AvailableReplicas)},
		counter{"observedGeneration", s.ObservedGeneration}, optional("terminatingReplicas", s.TerminatingReplicas))
	return append(faults, replicaParts(s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas)...)
}

// replicaParts is for ReplicaSets and ReplicationControllers.
func replicaParts(all, labeled, ready, available int32) field.ErrorList {
	faults := parts(counter{"status.replicas", int64(all)}, counter{"fullyLabeledReplicas", int64(labeled)},
		counter{"readyReplicas", int64(ready)}, counter{"availableReplicas", int64(available)})
	return append(faults, parts(counter{"readyReplicas", int64(ready)}, counter{"availableReplicas", int64(available)})...)
}

func validateDeploymentStatus(_ context.Context, obj, old runtime.Object) field.ErrorList {
	s, was := &obj.(*appsv1.Deployment).Status, &old.(*appsv1.Deployment).Status
	available := counter{"availableReplicas", int64(s.AvailableReplicas)}
	faults := counters(counter{"observedGeneration", s.ObservedGeneration}, counter{"replicas", int64(s.Replicas)},
		counter{"updatedReplicas", int64(s.UpdatedReplicas)}, counter{"readyReplicas", int64(s.ReadyReplicas)}, available,
		counter{"unavailableReplicas", int64(s.UnavailableReplicas)}, optional("terminatingReplicas", s.TerminatingReplicas),
		optional("collisionCount", s.CollisionCount))
	faults = append(faults, parts(counter{"status.replicas", int64(s.Replicas)}, counter{"updatedReplicas", int64(s.UpdatedReplicas)},
		counter{"readyReplicas", int64(s.ReadyReplicas)}, available)...)
	faults = append(faults, parts(counter{"readyReplicas", int64(s.ReadyReplicas)}, available)...)
	return append(faults, onlyGrows("collisionCount", s.CollisionCount, was.CollisionCount)...)
}
