package registry

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func batchRows() []*Resource { return []*Resource{cronJobs(), jobs()} }

// jobs. Not yet: validation of failure and success policies and of a status; the template of a
// suspended job, which Kubernetes lets queueing controllers change before it starts.
func jobs() *Resource {
	r := newRow[batchv1.Job, batchv1.JobList](batchv1.SchemeGroupVersion, "jobs", "Job")
	r.Categories = []string{"all"}
	r.Strategy = Strategy{
		Default:          defaulter(defaultJob),
		PrepareForCreate: preparer(selectByUID),
		Validate:         validator(validateJob),
		ValidateUpdate:   updateValidator(validateJobUpdate),
		Warnings:         warner(templateSpec, func(j *batchv1.Job) *corev1.PodSpec { return &j.Spec.Template.Spec }),
	}
	r.Subresources = []Subresource{unjudged(statusOf(r, func(j, old *batchv1.Job) { j.Spec = old.Spec }))}
	r.Fields = fieldSet(func(j *batchv1.Job) fields.Set {
		return fields.Set{"status.successful": strconv.Itoa(int(j.Status.Succeeded))}
	})
	r.Columns = columns([]string{"Name", "Status", "Completions", "Duration", "Age"}, "Containers", "Images", "Selector")
	r.Row = cells(jobRow)
	return r
}

func defaultJob(j *batchv1.Job) {
	defaultJobSpec(&j.Spec)
	if j.Spec.Completions == nil && j.Spec.Parallelism == nil {
		j.Spec.Completions = new(int32(1))
	}
	setPointer(&j.Spec.Parallelism, 1)
	if j.Spec.BackoffLimitPerIndex != nil {
		setPointer(&j.Spec.BackoffLimit, math.MaxInt32)
	}
	setPointer(&j.Spec.BackoffLimit, 6)
	setPointer(&j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	setPointer(&j.Spec.Suspend, false)
	if j.Spec.PodFailurePolicy != nil {
		setPointer(&j.Spec.PodReplacementPolicy, batchv1.Failed)
	}
	setPointer(&j.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	setPointer(&j.Spec.ManualSelector, false)
	if len(j.Labels) == 0 {
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
}

// defaultJobSpec is what jobs and the templates of cron jobs share.
func defaultJobSpec(spec *batchv1.JobSpec) {
	defaultPodTemplate(&spec.Template)
	if spec.PodFailurePolicy == nil {
		return
	}
	for i := range spec.PodFailurePolicy.Rules {
		for j := range spec.PodFailurePolicy.Rules[i].OnPodConditions {
			setDefault(&spec.PodFailurePolicy.Rules[i].OnPodConditions[j].Status, corev1.ConditionTrue)
		}
	}
}

// selectByUID gives a new job a selector and labels that no other job has, unless the user wants to
// choose (manualSelector).
func selectByUID(j *batchv1.Job) {
	if *j.Spec.ManualSelector {
		return
	}
	uid := string(j.UID)
	own := map[string]string{
		batchv1.ControllerUidLabel: uid, "controller-uid": uid,
		batchv1.JobNameLabel: j.Name, "job-name": j.Name,
	}
	for _, meta := range []*metav1.ObjectMeta{&j.ObjectMeta, &j.Spec.Template.ObjectMeta} {
		meta.Labels = labels.Merge(meta.Labels, own)
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = uid
}

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
	return faults
}

func validateJobSpec(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	faults := validatePodTemplate(path.Child("template"), &spec.Template)
	if policy := spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyOnFailure && policy != corev1.RestartPolicyNever {
		faults = append(faults, field.Required(path.Child("template", "spec", "restartPolicy"), `valid values: "OnFailure", "Never"`))
	}
	for name, n := range inOrder(map[string]*int32{
		"parallelism": spec.Parallelism, "completions": spec.Completions, "backoffLimit": spec.BackoffLimit, "ttlSecondsAfterFinished": spec.TTLSecondsAfterFinished,
	}) {
		if n != nil {
			faults = append(faults, notNegative(path.Child(name), *n)...)
		}
	}
	if spec.ActiveDeadlineSeconds != nil {
		faults = append(faults, notNegative(path.Child("activeDeadlineSeconds"), *spec.ActiveDeadlineSeconds)...)
	}
	if mode := spec.CompletionMode; mode != nil {
		faults = append(faults, oneOf(path.Child("completionMode"), *mode, batchv1.IndexedCompletion, batchv1.NonIndexedCompletion)...)
		if *mode == batchv1.IndexedCompletion && spec.Completions == nil {
			faults = append(faults, field.Required(path.Child("completions"), fmt.Sprintf("when completion mode is %s", *mode)))
		}
	}
	return faults
}

func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	faults := immutable(specPath.Child("selector"), j.Spec.Selector, old.Spec.Selector)
	faults = append(faults, immutable(specPath.Child("completionMode"), j.Spec.CompletionMode, old.Spec.CompletionMode)...)
	if *j.Spec.CompletionMode == batchv1.NonIndexedCompletion {
		faults = append(faults, immutable(specPath.Child("completions"), j.Spec.Completions, old.Spec.Completions)...)
	}
	if !apiequality.Semantic.DeepEqual(j.Spec.Template, old.Spec.Template) {
		faults = append(faults, field.Invalid(specPath.Child("template"), j.Spec.Template, "field is immutable"))
	}
	return faults
}

func jobRow(j *batchv1.Job, now time.Time) []any {
	of := "1"
	if j.Spec.Completions != nil {
		of = strconv.Itoa(int(*j.Spec.Completions))
	} else if n := replicas(j.Spec.Parallelism); n > 1 {
		of = fmt.Sprintf("1 of %d", n)
	}
	took := ""
	if start := j.Status.StartTime; start != nil {
		end := now
		if j.Status.CompletionTime != nil {
			end = j.Status.CompletionTime.Time
		}
		took = duration.HumanDuration(end.Sub(start.Time))
	}
	names, images := containerCells(j.Spec.Template.Spec.Containers)
	return []any{j.Name, jobStatus(j), fmt.Sprintf("%d/%s", j.Status.Succeeded, of), took, age(&j.ObjectMeta, now),
		names, images, metav1.FormatLabelSelector(j.Spec.Selector)}
}

func jobStatus(j *batchv1.Job) string {
	is := map[batchv1.JobConditionType]bool{}
	for _, c := range j.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	switch {
	case is[batchv1.JobComplete]:
		return "Complete"
	case is[batchv1.JobFailed]:
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case is[batchv1.JobSuspended]:
		return "Suspended"
	case is[batchv1.JobFailureTarget]:
		return "FailureTarget"
	case is[batchv1.JobSuccessCriteriaMet]:
		return "SuccessCriteriaMet"
	}
	return "Running"
}

// cronJobs. Not yet: the grammar of the schedule and the name of the time zone (they need the cron
// parser of the controller).
func cronJobs() *Resource {
	r := newRow[batchv1.CronJob, batchv1.CronJobList](batchv1.SchemeGroupVersion, "cronjobs", "CronJob")
	r.ShortNames, r.Categories = []string{"cj"}, []string{"all"}
	r.Strategy = Strategy{
		Default: defaulter(func(c *batchv1.CronJob) {
			defaultJobSpec(&c.Spec.JobTemplate.Spec)
			setDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
			setPointer(&c.Spec.Suspend, false)
			setPointer(&c.Spec.SuccessfulJobsHistoryLimit, 3)
			setPointer(&c.Spec.FailedJobsHistoryLimit, 1)
		}),
		Validate: validator(validateCronJob),
	}
	r.Subresources = []Subresource{unjudged(statusOf(r, func(c, old *batchv1.CronJob) { c.Spec = old.Spec }))}
	r.Columns = columns([]string{"Name", "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age"}, "Containers", "Images", "Selector")
	r.Row = cells(func(c *batchv1.CronJob, now time.Time) []any {
		zone, last := none, none
		if c.Spec.TimeZone != nil {
			zone = *c.Spec.TimeZone
		}
		if c.Status.LastScheduleTime != nil {
			last = since(*c.Status.LastScheduleTime, now)
		}
		suspended := unset
		if c.Spec.Suspend != nil {
			suspended = map[bool]string{true: "True", false: "False"}[*c.Spec.Suspend]
		}
		names, images := containerCells(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
		return []any{c.Name, c.Spec.Schedule, zone, suspended, int64(len(c.Status.Active)), last, age(&c.ObjectMeta, now),
			names, images, metav1.FormatLabelSelector(c.Spec.JobTemplate.Spec.Selector)}
	})
	return r
}

func validateCronJob(c *batchv1.CronJob) field.ErrorList {
	faults := required(specPath.Child("schedule"), c.Spec.Schedule)
	faults = append(faults, oneOf(specPath.Child("concurrencyPolicy"), c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	for name, n := range inOrder(map[string]*int32{"successfulJobsHistoryLimit": c.Spec.SuccessfulJobsHistoryLimit, "failedJobsHistoryLimit": c.Spec.FailedJobsHistoryLimit}) {
		faults = append(faults, notNegative(specPath.Child(name), *n)...)
	}
	if s := c.Spec.StartingDeadlineSeconds; s != nil {
		faults = append(faults, notNegative(specPath.Child("startingDeadlineSeconds"), *s)...)
	}
	if len(c.Name) > 52 { // the controller appends eleven characters to make the names of jobs
		faults = append(faults, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters"))
	}
	return append(faults, validateJobSpec(specPath.Child("jobTemplate", "spec"), &c.Spec.JobTemplate.Spec)...)
}
