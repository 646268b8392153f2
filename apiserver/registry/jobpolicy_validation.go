package registry

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kubernetes' limits on the policies of a job.
const (
	maxPolicyRules     = 20
	maxExitCodes       = 255
	maxPodConditions   = 20
	maxSuccessIndexes  = 64 << 10 // characters
	onlyIndexedSucceed = "requires indexed completion mode"
)

// validateJobPolicies: when a pod that ends badly counts, when the job is done early, and when a lost pod is
// replaced.
func validateJobPolicies(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	var faults field.ErrorList
	if policy := spec.PodFailurePolicy; policy != nil {
		rules := path.Child("podFailurePolicy", "rules")
		if len(policy.Rules) > maxPolicyRules {
			faults = append(faults, field.TooMany(rules, len(policy.Rules), maxPolicyRules))
		}
		for i := range policy.Rules {
			faults = append(faults, failureRule(rules.Index(i), &policy.Rules[i], spec)...)
		}
	}
	if policy := spec.SuccessPolicy; policy != nil {
		at := path.Child("successPolicy")
		if indexed(spec) {
			faults = append(faults, successRules(at.Child("rules"), policy.Rules, spec)...)
		} else {
			faults = append(faults, field.Invalid(at, *policy, onlyIndexedSucceed))
		}
	}
	if p := spec.PodReplacementPolicy; p != nil {
		at := path.Child("podReplacementPolicy")
		allowed := []batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}
		if spec.PodFailurePolicy != nil {
			allowed = allowed[:1]
		}
		if !slices.Contains(allowed, *p) {
			faults = append(faults, field.NotSupported(at, *p, allowed))
		}
	}
	return faults
}

func failureRule(path *field.Path, r *batchv1.PodFailurePolicyRule, spec *batchv1.JobSpec) field.ErrorList {
	actions := []batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
	}
	var faults field.ErrorList
	switch action := path.Child("action"); {
	case r.Action == "":
		faults = append(faults, field.Required(action, fmt.Sprintf("valid values: %q", actions)))
	case r.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil:
		faults = append(faults, field.Invalid(action, r.Action, "requires the backoffLimitPerIndex to be set"))
	case !slices.Contains(actions, r.Action):
		faults = append(faults, field.NotSupported(action, r.Action, actions))
	}
	if r.OnExitCodes != nil {
		faults = append(faults, exitCodes(path.Child("onExitCodes"), r.OnExitCodes, spec)...)
	}
	conditions := path.Child("onPodConditions")
	if len(r.OnPodConditions) > maxPodConditions {
		faults = append(faults, field.TooMany(conditions, len(r.OnPodConditions), maxPodConditions))
	}
	for i, p := range r.OnPodConditions {
		faults = append(faults, qualifiedName(conditions.Index(i).Child("type"), string(p.Type))...)
		faults = append(faults, oneOf(conditions.Index(i).Child("status"), p.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
	}
	switch {
	case r.OnExitCodes != nil && len(r.OnPodConditions) > 0:
		faults = append(faults, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case r.OnExitCodes == nil && len(r.OnPodConditions) == 0:
		faults = append(faults, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return faults
}

func exitCodes(path *field.Path, r *batchv1.PodFailurePolicyOnExitCodesRequirement, spec *batchv1.JobSpec) field.ErrorList {
	faults := oneOf(path.Child("operator"), r.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if name := r.ContainerName; name != nil {
		has := func(c corev1.Container) bool { return c.Name == *name }
		if !slices.ContainsFunc(spec.Template.Spec.Containers, has) && !slices.ContainsFunc(spec.Template.Spec.InitContainers, has) {
			faults = append(faults, field.Invalid(path.Child("containerName"), *name, "must be one of the container or initContainer names in the pod template"))
		}
	}
	values := path.Child("values")
	switch n := len(r.Values); {
	case n == 0:
		faults = append(faults, field.Invalid(values, r.Values, "at least one value is required"))
	case n > maxExitCodes:
		faults = append(faults, field.TooMany(values, n, maxExitCodes))
	}
	seen := map[int32]bool{}
	for i, code := range r.Values {
		if code == 0 && r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			faults = append(faults, field.Invalid(values.Index(i), code, "must not be 0 for the In operator"))
		}
		if seen[code] {
			faults = append(faults, field.Duplicate(values.Index(i), code))
		}
		seen[code] = true
	}
	if !slices.IsSorted(r.Values) {
		faults = append(faults, field.Invalid(values, r.Values, "must be ordered"))
	}
	return faults
}

func successRules(path *field.Path, rules []batchv1.SuccessPolicyRule, spec *batchv1.JobSpec) field.ErrorList {
	var faults field.ErrorList
	switch n := len(rules); {
	case n == 0:
		faults = append(faults, field.Required(path, "at least one rules must be specified when the successPolicy is specified"))
	case n > maxPolicyRules:
		faults = append(faults, field.TooMany(path, n, maxPolicyRules))
	}
	if spec.Completions == nil {
		return faults // required, and said elsewhere
	}
	for i, r := range rules {
		at := path.Index(i)
		if r.SucceededCount == nil && r.SucceededIndexes == nil {
			faults = append(faults, field.Required(at, "at least one of succeededCount or succeededIndexes must be specified"))
		}
		var total int32
		if text := r.SucceededIndexes; text != nil {
			list := at.Child("succeededIndexes")
			if len(*text) > maxSuccessIndexes {
				faults = append(faults, field.TooLong(list, "", maxSuccessIndexes))
			}
			var err error
			if total, err = countIndexes(*text, *spec.Completions); err != nil {
				faults = append(faults, field.Invalid(list, *text, "error parsing succeededIndexes: "+err.Error()))
			}
		}
		if n := r.SucceededCount; n != nil {
			count := at.Child("succeededCount")
			faults = append(faults, notNegative(count, *n)...)
			if *n > *spec.Completions {
				faults = append(faults, field.Invalid(count, *n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", *spec.Completions)))
			}
			if r.SucceededIndexes != nil && *n > total {
				faults = append(faults, field.Invalid(count, *n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", total)))
			}
		}
	}
	return faults
}
