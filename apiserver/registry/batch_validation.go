package registry

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kubernetes' limits on jobs.
const (
	maxIndexes         = 100_000 // parallelism and failed indexes of an indexed job
	manyCompletions    = 100_000 // above it, the limits of the next line hold
	maxWithManyIndexes = 10_000
	maxManagerLength   = 63
)

func validateJob(j *batchv1.Job) field.ErrorList {
	var faults field.ErrorList
	if !exists(j) {
		faults = generatedSelector(j)
	}
	faults = append(faults, validateJobSpec(specPath, &j.Spec)...)
	path, selector := specPath.Child("selector"), j.Spec.Selector
	if selector == nil {
		faults = append(faults, field.Required(path, ""))
	} else {
		faults = append(faults, metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)...)
	}
	faults = append(faults, workload{selector: selector, template: &j.Spec.Template}.selected(specPath.Child("template"))...)
	if exists(j) { // validateJobUpdate judges the name
		return faults
	}
	return append(faults, jobPodNames(j)...)
}

// generatedSelector: unless the user chooses the selector, the pods carry the labels that the server makes, and no
// others under their names.
func generatedSelector(j *batchv1.Job) field.ErrorList {
	if isTrue(j.Spec.ManualSelector) || j.Spec.Selector == nil {
		return nil
	}
	own, path := ownLabels(j), specPath.Child("template", "metadata", "labels")
	var faults field.ErrorList
	for _, key := range []string{legacyUIDLabel, legacyJobNameLabel, batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		if is, ok := j.Spec.Template.Labels[key]; !ok {
			faults = append(faults, field.Required(path.Key(key), fmt.Sprintf("must be '%s'", own[key])))
		} else if is != own[key] {
			faults = append(faults, field.Invalid(path.Key(key), j.Spec.Template.Labels, fmt.Sprintf("must be '%s'", own[key])))
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !s.Matches(labels.Set(own)) {
		faults = append(faults, field.Invalid(specPath.Child("selector"), j.Spec.Selector, "`selector` not auto-generated"))
	}
	return faults
}

// jobPodNames: the pods of an indexed job are named after it, and their host names after them.
func jobPodNames(j *batchv1.Job) field.ErrorList {
	if j.Spec.CompletionMode == nil || *j.Spec.CompletionMode != batchv1.IndexedCompletion || j.Spec.Completions == nil || *j.Spec.Completions < 1 {
		return nil
	}
	last := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
	if m := validation.IsDNS1123Label(last); len(m) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), j.Name, fmt.Sprintf("will not able to create pod with invalid DNS label: %s", last))}
	}
	return nil
}

func validateJobSpec(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	var faults field.ErrorList
	atLeastNought := func(name string, n *int32) {
		if n != nil {
			faults = append(faults, notNegative(path.Child(name), *n)...)
		}
	}
	atLeastNought("parallelism", spec.Parallelism)
	atLeastNought("completions", spec.Completions)
	if s := spec.ActiveDeadlineSeconds; s != nil {
		faults = append(faults, notNegative(path.Child("activeDeadlineSeconds"), *s)...)
	}
	atLeastNought("backoffLimit", spec.BackoffLimit)
	atLeastNought("ttlSecondsAfterFinished", spec.TTLSecondsAfterFinished)
	atLeastNought("backoffLimitPerIndex", spec.BackoffLimitPerIndex)
	atLeastNought("maxFailedIndexes", spec.MaxFailedIndexes)
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		faults = append(faults, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if m := spec.ManagedBy; m != nil {
		faults = append(faults, validation.IsDomainPrefixedPath(path.Child("managedBy"), *m)...)
		if len(*m) > maxManagerLength {
			faults = append(faults, field.TooLong(path.Child("managedBy"), "", maxManagerLength))
		}
	}
	if mode := spec.CompletionMode; mode != nil && *mode != batchv1.NonIndexedCompletion && *mode != batchv1.IndexedCompletion {
		faults = append(faults, field.NotSupported(path.Child("completionMode"), *mode, []batchv1.CompletionMode{batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}))
	}
	faults = append(faults, validateIndexes(path, spec)...)
	faults = append(faults, validateJobPolicies(path, spec)...)
	faults = append(faults, validatePodTemplate(path.Child("template"), &spec.Template)...)
	return append(faults, jobRestartPolicy(path.Child("template", "spec", "restartPolicy"), spec)...)
}

// jobRestartPolicy: pods of a job end.
func jobRestartPolicy(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	switch policy := spec.Template.Spec.RestartPolicy; {
	case policy == corev1.RestartPolicyAlways || policy == "":
		return field.ErrorList{field.Required(path, `valid values: "OnFailure", "Never"`)}
	case policy != corev1.RestartPolicyOnFailure && policy != corev1.RestartPolicyNever:
		return field.ErrorList{field.NotSupported(path, policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever})}
	case spec.PodFailurePolicy != nil && policy != corev1.RestartPolicyNever:
		return field.ErrorList{field.Invalid(path, policy, `only "Never" is supported when podFailurePolicy is specified`)}
	}
	return nil
}

func indexed(spec *batchv1.JobSpec) bool {
	return spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
}

// validateIndexes: what only indexed jobs have, and how much of it.
func validateIndexes(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	var faults field.ErrorList
	if !indexed(spec) {
		for _, part := range []struct {
			name string
			n    *int32
		}{{"backoffLimitPerIndex", spec.BackoffLimitPerIndex}, {"maxFailedIndexes", spec.MaxFailedIndexes}} {
			if part.n != nil {
				faults = append(faults, field.Invalid(path.Child(part.name), *part.n, "requires indexed completion mode"))
			}
		}
		return faults
	}
	atMost := func(name string, n *int32, most int32, detail string) {
		if n != nil && *n > most {
			faults = append(faults, field.Invalid(path.Child(name), *n, detail))
		}
	}
	if spec.Completions == nil {
		faults = append(faults, field.Required(path.Child("completions"), "when completion mode is Indexed"))
	}
	atMost("parallelism", spec.Parallelism, maxIndexes, fmt.Sprintf("must be less than or equal to %d when completion mode is Indexed", maxIndexes))
	if spec.Completions != nil {
		atMost("maxFailedIndexes", spec.MaxFailedIndexes, *spec.Completions, "must be less than or equal to completions")
	}
	atMost("maxFailedIndexes", spec.MaxFailedIndexes, maxIndexes, fmt.Sprintf("must be less than or equal to %d", maxIndexes))
	if spec.Completions == nil || *spec.Completions <= manyCompletions || spec.BackoffLimitPerIndex == nil {
		return faults
	}
	if spec.MaxFailedIndexes == nil {
		faults = append(faults, field.Required(path.Child("maxFailedIndexes"), fmt.Sprintf("must be specified when completions is above %d", manyCompletions)))
	}
	detail := fmt.Sprintf("must be less than or equal to %d when completions are above %d and used with backoff limit per index", maxWithManyIndexes, manyCompletions)
	atMost("parallelism", spec.Parallelism, maxWithManyIndexes, detail)
	atMost("maxFailedIndexes", spec.MaxFailedIndexes, maxWithManyIndexes, detail)
	return faults
}

// validateJobUpdate: what the job is does not change. The number of an indexed job may, together with its
// parallelism (elastic jobs).
func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	now, was := &j.Spec, &old.Spec
	var faults field.ErrorList
	completions := specPath.Child("completions")
	switch {
	case apiequality.Semantic.DeepEqual(now.Completions, was.Completions) || indexed(now) && now.Completions == nil:
	case !indexed(now):
		faults = append(faults, immutable(completions, now.Completions, was.Completions)...)
	case *now.Completions != *now.Parallelism:
		faults = append(faults, field.Invalid(completions, now.Completions, "can only be modified in tandem with spec.parallelism"))
	}
	faults = append(faults, immutable(specPath.Child("selector"), now.Selector, was.Selector)...)
	faults = append(faults, jobTemplateUpdate(j, old)...)
	for _, part := range []struct {
		name     string
		now, was any
	}{
		{"completionMode", now.CompletionMode, was.CompletionMode}, {"podFailurePolicy", now.PodFailurePolicy, was.PodFailurePolicy},
		{"backoffLimitPerIndex", now.BackoffLimitPerIndex, was.BackoffLimitPerIndex}, {"managedBy", now.ManagedBy, was.ManagedBy},
		{"successPolicy", now.SuccessPolicy, was.SuccessPolicy},
	} {
		faults = append(faults, immutable(specPath.Child(part.name), part.now, part.was)...)
	}
	return append(faults, jobPodNames(j)...)
}

// jobTemplateUpdate: while a job is suspended and none of its pods is left, queueing controllers may say where the
// pods run and how much they get.
func jobTemplateUpdate(j, old *batchv1.Job) field.ErrorList {
	path, now := specPath.Child("template"), &j.Spec.Template
	suspended := isTrue(old.Spec.Suspend)
	if !suspended || old.Status.Active > 0 || old.Status.StartTime != nil && !jobIs(old, batchv1.JobSuspended) {
		return unchanged(path, *now, old.Spec.Template)
	}
	template := old.Spec.Template.DeepCopy()
	takeScheduling(template, now)
	return unchanged(specPath.Child("template.spec"), now.Spec, template.Spec) // as Kubernetes calls it
}

// unchanged is immutable for values that are shown in the internal form.
func unchanged[T any](path *field.Path, now, was T) field.ErrorList {
	if apiequality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, shown(now), apivalidation.FieldImmutableErrorMsg)}
}

// takeScheduling copies what decides where pods run, and how much they get. Affinity to other pods is not part of it.
func takeScheduling(into, from *corev1.PodTemplateSpec) {
	into.Labels, into.Annotations = from.Labels, from.Annotations
	to, spec := &into.Spec, &from.Spec
	to.NodeSelector, to.Tolerations, to.SchedulingGates = spec.NodeSelector, spec.Tolerations, spec.SchedulingGates
	var wanted *corev1.NodeAffinity
	if spec.Affinity != nil {
		wanted = spec.Affinity.NodeAffinity
		setPointer(&to.Affinity, corev1.Affinity{})
	}
	if to.Affinity != nil {
		to.Affinity.NodeAffinity = wanted
	}
	if spec.Affinity == nil && to.Affinity != nil && *to.Affinity == (corev1.Affinity{}) {
		to.Affinity = nil
	}
	takeResources(to.Containers, spec.Containers)
	takeResources(to.InitContainers, spec.InitContainers)
}
