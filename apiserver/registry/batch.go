package registry

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func batchRows() []*Resource { return []*Resource{cronJobs(), jobs()} }

// jobs. What is refused is in batch_validation.go.
func jobs() *Resource {
	r := newRow[batchv1.Job, batchv1.JobList](batchv1.SchemeGroupVersion, "jobs", "Job")
	r.Categories = []string{"all"}
	r.Strategy = Strategy{
		Default:          defaulter(defaultJob),
		PrepareForCreate: preparer(prepareJob),
		PrepareForUpdate: updatePreparer(func(j, _ *batchv1.Job) { dropGatedOfJob(&j.Spec) }),
		Validate:         validator(validateJob),
		ValidateUpdate:   updateValidator(validateJobUpdate),
		Warnings:         namingPods(jobWarnings),
		OrphanByDefault:  true,
		DeleteWarning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them " +
			"or set propagationPolicy=Orphan to suppress this warning",
	}
	status := statusOf(r, func(j, old *batchv1.Job) { j.Spec = old.Spec })
	status.Validate = func(_ context.Context, obj, old runtime.Object) field.ErrorList {
		return validateJobStatus(obj.(*batchv1.Job), old.(*batchv1.Job))
	}
	r.Subresources = []Subresource{status}
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
		j.Labels = j.Spec.Template.Labels // one map: what prepareJob adds is in both, as in Kubernetes
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

// prepareJob gives a new job a selector and pod labels that no other job has, unless the user wants to choose
// (manualSelector). What the user wrote under one of these names stays, and validation refuses it.
func prepareJob(j *batchv1.Job) {
	dropGatedOfJob(&j.Spec)
	if *j.Spec.ManualSelector {
		return
	}
	own := ownLabels(j)
	if j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	for key, value := range own {
		setKey(j.Spec.Template.Labels, key, value)
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	setKey(j.Spec.Selector.MatchLabels, batchv1.ControllerUidLabel, own[batchv1.ControllerUidLabel])
}

// The labels of a job's pods from before they had a prefix.
const (
	legacyUIDLabel     = "controller-uid"
	legacyJobNameLabel = "job-name"
)

// ownLabels tell the pods of a job from those of all others.
func ownLabels(j *batchv1.Job) map[string]string {
	return map[string]string{
		batchv1.ControllerUidLabel: string(j.UID), legacyUIDLabel: string(j.UID),
		batchv1.JobNameLabel: j.Name, legacyJobNameLabel: j.Name,
	}
}

// dropGatedOfJob: the gate WorkloadWithJob is off by default.
func dropGatedOfJob(s *batchv1.JobSpec) {
	s.Scheduling = nil
	dropGated(&s.Template.Spec)
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

// cronJobs make jobs by the clock.
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
		PrepareForCreate: preparer(func(c *batchv1.CronJob) { dropGatedOfJob(&c.Spec.JobTemplate.Spec) }),
		PrepareForUpdate: updatePreparer(func(c, _ *batchv1.CronJob) { dropGatedOfJob(&c.Spec.JobTemplate.Spec) }),
		Validate:         validator(validateNewCronJob),
		ValidateUpdate:   updateValidator(validateCronJobUpdate),
		UpdateRulesOnly:  true,
		Warnings:         namingPods(cronJobWarnings),
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
