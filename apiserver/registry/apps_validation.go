package registry

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateWorkload judges what workloads share: a selector that finds the pods of the template, and
// pods that are started again when they end.
func validateWorkload(kind string, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) field.ErrorList {
	path := specPath.Child("selector")
	var faults field.ErrorList
	if selector == nil {
		faults = append(faults, field.Required(path, ""))
	} else {
		faults = append(faults, metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			faults = append(faults, field.Invalid(path, selector, "empty selector is invalid for "+kind))
		}
	}
	at := specPath.Child("template")
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case err != nil:
		faults = append(faults, field.Invalid(path, selector, "invalid label selector"))
	case !parsed.Empty() && !parsed.Matches(labels.Set(template.Labels)):
		faults = append(faults, field.Invalid(at.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	faults = append(faults, validatePodTemplate(at, template)...)
	if policy := template.Spec.RestartPolicy; policy != corev1.RestartPolicyAlways {
		faults = append(faults, field.NotSupported(at.Child("spec", "restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		faults = append(faults, field.Forbidden(at.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported"))
	}
	return faults
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	faults := notNegative(specPath.Child("replicas"), *spec.Replicas)
	faults = append(faults, validateWorkload("deployment", spec.Selector, &spec.Template)...)
	faults = append(faults, validateRollout(specPath.Child("strategy"), &spec.Strategy)...)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), spec.MinReadySeconds)...)
	if spec.RevisionHistoryLimit != nil {
		faults = append(faults, notNegative(specPath.Child("revisionHistoryLimit"), *spec.RevisionHistoryLimit)...)
	}
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
	return field.ErrorList{field.NotSupported(path, s.Type, []appsv1.DeploymentStrategyType{
		appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType,
	})}
}

// share is a count or a percentage.
func share(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	if v.Type == intstr.String {
		return invalid(path, v.StrVal, validation.IsValidPercent(v.StrVal))
	}
	return notNegative(path, v.IntVal)
}

func percent(v *intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return n, err == nil
}

func isNought(v *intstr.IntOrString) bool {
	if n, ok := percent(v); ok {
		return n == 0
	}
	return v.Type == intstr.Int && v.IntVal == 0
}

func atMostAll(path *field.Path, v *intstr.IntOrString) field.ErrorList {
	if n, ok := percent(v); ok && n > 100 {
		return field.ErrorList{field.Invalid(path, v.StrVal, "must not be greater than 100%")}
	}
	return nil
}

func validateDeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	return immutable(specPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
}

func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	faults := notNegative(specPath.Child("replicas"), *rs.Spec.Replicas)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), rs.Spec.MinReadySeconds)...)
	return append(faults, validateWorkload("replicaset", rs.Spec.Selector, &rs.Spec.Template)...)
}

func validateReplicaSetUpdate(rs, old *appsv1.ReplicaSet) field.ErrorList {
	return immutable(specPath.Child("selector"), rs.Spec.Selector, old.Spec.Selector)
}

// counts judges the counters of a status, in the order of the pairs.
func counts(status *field.Path, names []string, values ...int32) field.ErrorList {
	var faults field.ErrorList
	for i, name := range names {
		faults = append(faults, notNegative(status.Child(name), values[i])...)
	}
	return faults
}

// validateReplicaSetStatus: no counter exceeds the number of pods.
func validateReplicaSetStatus(rs *appsv1.ReplicaSet) field.ErrorList {
	status, s := field.NewPath("status"), &rs.Status
	faults := counts(status, []string{"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
		s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas)
	return append(faults, noMoreThan(status, s.Replicas, map[string]int32{
		"fullyLabeledReplicas": s.FullyLabeledReplicas, "readyReplicas": s.ReadyReplicas, "availableReplicas": s.AvailableReplicas,
	})...)
}

func validateDeploymentStatus(d *appsv1.Deployment) field.ErrorList {
	status, s := field.NewPath("status"), &d.Status
	faults := counts(status, []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"},
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas)
	return append(faults, noMoreThan(status, s.Replicas, map[string]int32{
		"updatedReplicas": s.UpdatedReplicas, "readyReplicas": s.ReadyReplicas, "availableReplicas": s.AvailableReplicas,
	})...)
}

func noMoreThan(status *field.Path, replicas int32, parts map[string]int32) field.ErrorList {
	var faults field.ErrorList
	for name, n := range inOrder(parts) {
		if n > replicas {
			faults = append(faults, field.Invalid(status.Child(name), n, "cannot be greater than status.replicas"))
		}
	}
	return faults
}
