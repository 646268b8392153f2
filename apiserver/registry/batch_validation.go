package registry

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the names of time zones, on a machine that does not have them

	"github.com/robfig/cron/v3"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
	maxNameOfCronJob   = 52 // the controller appends eleven characters to make the names of jobs
)

func validateJob(j *batchv1.Job) field.ErrorList {
	faults := validateJobSpec(specPath, &j.Spec)
	selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector)
	switch {
	case j.Spec.Selector == nil:
		faults = append(faults, field.Required(specPath.Child("selector"), ""))
	case err != nil:
		faults = append(faults, metavalidation.ValidateLabelSelector(j.Spec.Selector, metavalidation.LabelSelectorValidationOptions{}, specPath.Child("selector"))...)
	case !selector.Matches(labels.Set(j.Spec.Template.Labels)):
		faults = append(faults, field.Invalid(specPath.Child("template", "metadata", "labels"), j.Spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	if exists(j) { // the name of an old one stays as it is
		return faults
	}
	return append(faults, jobPodNames(j)...)
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
	for name, n := range inOrder(map[string]*int32{
		"parallelism": spec.Parallelism, "completions": spec.Completions, "backoffLimit": spec.BackoffLimit,
		"ttlSecondsAfterFinished": spec.TTLSecondsAfterFinished, "backoffLimitPerIndex": spec.BackoffLimitPerIndex, "maxFailedIndexes": spec.MaxFailedIndexes,
	}) {
		if n != nil {
			faults = append(faults, notNegative(path.Child(name), *n)...)
		}
	}
	if s := spec.ActiveDeadlineSeconds; s != nil {
		faults = append(faults, notNegative(path.Child("activeDeadlineSeconds"), *s)...)
	}
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
	restart := path.Child("template", "spec", "restartPolicy")
	switch policy := spec.Template.Spec.RestartPolicy; {
	case policy == corev1.RestartPolicyAlways || policy == "":
		faults = append(faults, field.Required(restart, `valid values: "OnFailure", "Never"`))
	case policy != corev1.RestartPolicyOnFailure && policy != corev1.RestartPolicyNever:
		faults = append(faults, field.NotSupported(restart, policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	case spec.PodFailurePolicy != nil && policy != corev1.RestartPolicyNever:
		faults = append(faults, field.Invalid(restart, policy, `only "Never" is supported when podFailurePolicy is specified`))
	}
	return faults
}

func indexed(spec *batchv1.JobSpec) bool {
	return spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
}

// validateIndexes: what only indexed jobs have, and how much of it.
func validateIndexes(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	var faults field.ErrorList
	parts := inOrder(map[string]*int32{"backoffLimitPerIndex": spec.BackoffLimitPerIndex, "maxFailedIndexes": spec.MaxFailedIndexes})
	if !indexed(spec) {
		for name, n := range parts {
			if n != nil {
				faults = append(faults, field.Invalid(path.Child(name), *n, "requires indexed completion mode"))
			}
		}
		return faults
	}
	atMost := func(name string, n *int32, most int32, detail string) {
		if n != nil && *n > most {
			faults = append(faults, field.Invalid(path.Child(name), *n, detail))
		}
	}
	atMost("parallelism", spec.Parallelism, maxIndexes, fmt.Sprintf("must be less than or equal to %d when completion mode is Indexed", maxIndexes))
	atMost("maxFailedIndexes", spec.MaxFailedIndexes, maxIndexes, fmt.Sprintf("must be less than or equal to %d", maxIndexes))
	if spec.Completions == nil {
		return append(faults, field.Required(path.Child("completions"), "when completion mode is Indexed"))
	}
	atMost("maxFailedIndexes", spec.MaxFailedIndexes, *spec.Completions, "must be less than or equal to completions")
	if *spec.Completions <= manyCompletions || spec.BackoffLimitPerIndex == nil {
		return faults
	}
	detail := fmt.Sprintf("must be less than or equal to %d when completions are above %d and used with backoff limit per index", maxWithManyIndexes, manyCompletions)
	atMost("parallelism", spec.Parallelism, maxWithManyIndexes, detail)
	atMost("maxFailedIndexes", spec.MaxFailedIndexes, maxWithManyIndexes, detail)
	if spec.MaxFailedIndexes == nil {
		faults = append(faults, field.Required(path.Child("maxFailedIndexes"), fmt.Sprintf("must be specified when completions is above %d", manyCompletions)))
	}
	return faults
}

// validateJobUpdate: what the job is does not change. The number of an indexed job may, together with its
// parallelism (elastic jobs); the scheduling of a suspended job's pods may, as queueing controllers do.
func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	faults := immutable(specPath.Child("selector"), j.Spec.Selector, old.Spec.Selector)
	for name, pair := range inOrder(map[string][2]any{
		"completionMode":       {j.Spec.CompletionMode, old.Spec.CompletionMode},
		"podFailurePolicy":     {j.Spec.PodFailurePolicy, old.Spec.PodFailurePolicy},
		"backoffLimitPerIndex": {j.Spec.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex},
		"managedBy":            {j.Spec.ManagedBy, old.Spec.ManagedBy},
		"successPolicy":        {j.Spec.SuccessPolicy, old.Spec.SuccessPolicy},
	}) {
		faults = append(faults, immutable(specPath.Child(name), pair[0], pair[1])...)
	}
	completions := specPath.Child("completions")
	switch {
	case apiequality.Semantic.DeepEqual(j.Spec.Completions, old.Spec.Completions):
	case !indexed(&j.Spec):
		faults = append(faults, immutable(completions, j.Spec.Completions, old.Spec.Completions)...)
	case !apiequality.Semantic.DeepEqual(j.Spec.Completions, j.Spec.Parallelism):
		faults = append(faults, field.Invalid(completions, j.Spec.Completions, "can only be modified in tandem with spec.parallelism"))
	}
	template := old.Spec.Template.DeepCopy()
	if old.Spec.Suspend != nil && *old.Spec.Suspend && old.Status.StartTime == nil {
		takeScheduling(template, &j.Spec.Template)
	}
	if !apiequality.Semantic.DeepEqual(j.Spec.Template, *template) {
		faults = append(faults, field.Invalid(specPath.Child("template"), j.Spec.Template, "field is immutable"))
	}
	return faults
}

// takeScheduling copies what decides where pods run, and how much they get.
func takeScheduling(into, from *corev1.PodTemplateSpec) {
	into.Labels, into.Annotations = from.Labels, from.Annotations
	to, spec := &into.Spec, &from.Spec
	to.NodeSelector, to.Affinity, to.Tolerations, to.SchedulingGates = spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.SchedulingGates
	takeResources(to.Containers, spec.Containers)
	takeResources(to.InitContainers, spec.InitContainers)
}

func validateCronJob(c *batchv1.CronJob) field.ErrorList {
	var faults field.ErrorList
	at := specPath.Child("schedule")
	if c.Spec.Schedule == "" {
		faults = append(faults, field.Required(at, ""))
	} else {
		if err := parseSchedule(c.Spec.Schedule); err != nil {
			faults = append(faults, field.Invalid(at, c.Spec.Schedule, err.Error()))
		}
		if strings.Contains(c.Spec.Schedule, "TZ") {
			faults = append(faults, field.Invalid(at, c.Spec.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
		}
	}
	if s := c.Spec.StartingDeadlineSeconds; s != nil {
		faults = append(faults, notNegative(specPath.Child("startingDeadlineSeconds"), *s)...)
	}
	faults = append(faults, timeZone(specPath.Child("timeZone"), c.Spec.TimeZone)...)
	faults = append(faults, oneOf(specPath.Child("concurrencyPolicy"), c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	for name, n := range inOrder(map[string]*int32{"successfulJobsHistoryLimit": c.Spec.SuccessfulJobsHistoryLimit, "failedJobsHistoryLimit": c.Spec.FailedJobsHistoryLimit}) {
		if n != nil {
			faults = append(faults, notNegative(specPath.Child(name), *n)...)
		}
	}
	if len(c.Name) > maxNameOfCronJob {
		faults = append(faults, field.Invalid(field.NewPath("metadata", "name"), c.Name, fmt.Sprintf("must be no more than %d characters", maxNameOfCronJob)))
	}
	return append(faults, cronJobTemplate(specPath.Child("jobTemplate", "spec"), &c.Spec.JobTemplate.Spec)...)
}

// cronJobTemplate: selectors are made for each job.
func cronJobTemplate(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	faults := validateJobSpec(path, spec)
	if spec.Selector != nil {
		faults = append(faults, field.Invalid(path.Child("selector"), spec.Selector, "`selector` will be auto-generated"))
	}
	if isTrue(spec.ManualSelector) {
		faults = append(faults, field.NotSupported(path.Child("manualSelector"), *spec.ManualSelector, []string{"nil", "false"}))
	}
	return faults
}

// parseSchedule reads five fields or a word like @daily. The parser panics on some texts.
func parseSchedule(text string) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("invalid schedule format: %v", failure)
		}
	}()
	_, err = cron.ParseStandard(text)
	return err
}

// timeZone is a name of the IANA's list.
func timeZone(path *field.Path, name *string) field.ErrorList {
	switch {
	case name == nil:
		return nil
	case *name == "":
		return field.ErrorList{field.Invalid(path, *name, "timeZone must be nil or non-empty string")}
	case strings.EqualFold(*name, "Local"):
		return field.ErrorList{field.Invalid(path, *name, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")}
	}
	for part := range strings.SplitSeq(*name, "/") { // it becomes a file name
		if part == "." || part == ".." || strings.HasPrefix(part, "-") {
			return field.ErrorList{field.Invalid(path, *name, "unknown time zone "+*name)}
		}
	}
	if _, err := time.LoadLocation(*name); err != nil {
		return field.ErrorList{field.Invalid(path, *name, err.Error())}
	}
	return nil
}
