package registry

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A jobChange judges the next status of a job. Other controllers than Kubernetes' own may run jobs (managedBy), so
// that clients rely on these rules. Most look only at what has changed: a status that an earlier release left wrong
// can still be mended step by step.
type jobChange struct {
	job, old *batchv1.Job
	faults   field.ErrorList
}

func validateJobStatus(job, old *batchv1.Job) field.ErrorList {
	c := jobChange{job: job, old: old}
	c.counters()
	c.conditions()
	c.times()
	c.ended()
	c.indexes()
	c.transitions()
	return c.faults
}

func jobIs(j *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func jobEnded(j *batchv1.Job) bool {
	return jobIs(j, batchv1.JobComplete) || jobIs(j, batchv1.JobFailed)
}

func (c *jobChange) is(kind batchv1.JobConditionType) bool  { return jobIs(c.job, kind) }
func (c *jobChange) was(kind batchv1.JobConditionType) bool { return jobIs(c.old, kind) }

func (c *jobChange) changed(kinds ...batchv1.JobConditionType) bool {
	return slices.ContainsFunc(kinds, func(kind batchv1.JobConditionType) bool { return c.is(kind) != c.was(kind) })
}

// refuse adds a fault of a field of the status if the condition holds.
func (c *jobChange) refuse(holds bool, name string, value any, detail string) {
	if holds {
		c.faults = append(c.faults, field.Invalid(statusPath.Child(name), value, detail))
	}
}

func (c *jobChange) require(holds bool, name, detail string) {
	if holds {
		c.faults = append(c.faults, field.Required(statusPath.Child(name), detail))
	}
}

func (c *jobChange) counters() {
	s := &c.job.Status
	c.faults = append(c.faults, counters(counter{"active", int64(s.Active)}, counter{"succeeded", int64(s.Succeeded)},
		counter{"failed", int64(s.Failed)}, optional("ready", s.Ready), optional("terminating", s.Terminating))...)
	if u := s.UncountedTerminatedPods; u != nil {
		path, seen := statusPath.Child("uncountedTerminatedPods"), map[types.UID]bool{}
		c.distinct(path.Child("succeeded"), u.Succeeded, seen)
		c.distinct(path.Child("failed"), u.Failed, seen)
	}
}

func (c *jobChange) distinct(path *field.Path, uids []types.UID, seen map[types.UID]bool) {
	for i, uid := range uids {
		switch {
		case uid == "":
			c.faults = append(c.faults, field.Invalid(path.Index(i), uid, "must not be empty"))
		case seen[uid]:
			c.faults = append(c.faults, field.Duplicate(path.Index(i), uid))
		}
		seen[uid] = true
	}
}

// conditions that exclude each other, and those that others must precede.
func (c *jobChange) conditions() {
	no := func(holds bool, detail string) { c.refuse(holds, "conditions", field.OmitValueType{}, detail) }
	complete, failed := c.is(batchv1.JobComplete), c.is(batchv1.JobFailed)
	failing, met := c.is(batchv1.JobFailureTarget), c.is(batchv1.JobSuccessCriteriaMet)
	no(c.changed(batchv1.JobComplete, batchv1.JobFailed) && complete && failed, "cannot set Complete=True and Failed=true conditions")
	no(c.changed(batchv1.JobComplete, batchv1.JobFailureTarget) && complete && failing, "cannot set Complete=True and FailureTarget=true conditions")
	no((c.changed(batchv1.JobFailed) || c.failedIndexesChanged()) && failed && !failing, "cannot set Failed=True condition without the FailureTarget=true condition")
	no(c.changed(batchv1.JobComplete, batchv1.JobSuccessCriteriaMet) && complete && !met, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
	no(met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
	no(met && failing, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
	no(c.job.Spec.SuccessPolicy != nil && !met && complete, "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")
}

func sameTime(a, b *metav1.Time) bool { return apiequality.Semantic.DeepEqual(a, b) }

func (c *jobChange) times() {
	s, was := &c.job.Status, &c.old.Status
	started, completed := !sameTime(s.StartTime, was.StartTime), !sameTime(s.CompletionTime, was.CompletionTime)
	if completed || c.changed(batchv1.JobComplete) {
		c.refuse(s.CompletionTime != nil && !c.is(batchv1.JobComplete), "completionTime", s.CompletionTime, "cannot set completionTime when there is no Complete=True condition")
		c.require(s.CompletionTime == nil && c.is(batchv1.JobComplete), "completionTime", "completionTime is required for Complete jobs")
	}
	c.refuse((started || completed) && s.StartTime != nil && s.CompletionTime != nil && s.CompletionTime.Before(s.StartTime),
		"completionTime", s.CompletionTime, "must be equal to or after `startTime`")
}

// ended: nothing of a job runs any more once it has ended.
func (c *jobChange) ended() {
	s, was := &c.job.Status, &c.old.Status
	ended, changed := jobEnded(c.job), jobEnded(c.job) != jobEnded(c.old)
	c.refuse(ended && s.Active > 0 && (changed || s.Active != was.Active), "active", s.Active, "active>0 is invalid for finished job")
	nothingToDo := isTrue(c.job.Spec.Suspend) && c.job.Spec.Completions != nil && *c.job.Spec.Completions == 0
	c.require(ended && s.StartTime == nil && (changed || was.StartTime != nil) && !nothingToDo, "startTime", "startTime is required for finished job")
	if u := s.UncountedTerminatedPods; u != nil && ended && len(u.Failed)+len(u.Succeeded) > 0 {
		c.refuse(changed || !apiequality.Semantic.DeepEqual(u, was.UncountedTerminatedPods), "uncountedTerminatedPods", shown(u), "must be empty for finished job")
	}
	if n := s.Terminating; n != nil && ended && *n > 0 {
		c.refuse(changed || !apiequality.Semantic.DeepEqual(n, was.Terminating), "terminating", *n, "terminating>0 is invalid for finished job")
	}
	if n := s.Ready; n != nil && *n > s.Active {
		c.refuse(s.Active != was.Active || !apiequality.Semantic.DeepEqual(n, was.Ready), "ready", *n, "cannot set more ready pods than active")
	}
}

func (c *jobChange) failedIndexesChanged() bool {
	return !apiequality.Semantic.DeepEqual(c.job.Status.FailedIndexes, c.old.Status.FailedIndexes)
}

// indexes are in order, below the number of completions, and either completed or failed.
func (c *jobChange) indexes() {
	s, spec := &c.job.Status, &c.job.Spec
	completedChanged, failedChanged := s.CompletedIndexes != c.old.Status.CompletedIndexes, c.failedIndexesChanged()
	var completed, failed []indexRange
	var err error
	if spec.Completions != nil {
		completed, err = parseIndexes(s.CompletedIndexes, *spec.Completions)
		if err != nil {
			c.refuse(completedChanged, "completedIndexes", s.CompletedIndexes, "error parsing completedIndexes: "+err.Error())
		}
	}
	if spec.Completions != nil && s.FailedIndexes != nil {
		failed, err = parseIndexes(*s.FailedIndexes, *spec.Completions)
		if err != nil {
			c.refuse(failedChanged && spec.BackoffLimitPerIndex != nil, "failedIndexes", *s.FailedIndexes, "error parsing failedIndexes: "+err.Error())
		}
	}
	c.refuse(completedChanged && s.CompletedIndexes != "" && !indexed(spec), "completedIndexes", s.CompletedIndexes, "cannot set non-empty completedIndexes when non-indexed completion mode")
	if s.FailedIndexes == nil {
		return
	}
	c.refuse(failedChanged && spec.BackoffLimitPerIndex == nil, "failedIndexes", *s.FailedIndexes, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
	if both, ok := overlap(completed, failed); ok {
		c.refuse(completedChanged || failedChanged, "failedIndexes", *s.FailedIndexes, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", both))
	}
}

// transitions: what has been said of a job is not taken back.
func (c *jobChange) transitions() {
	s, was := &c.job.Status, &c.old.Status
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget} {
		c.refuse(c.was(kind) && !c.is(kind), "conditions", field.OmitValueType{}, fmt.Sprintf("cannot disable the terminal %s=True condition", kind))
	}
	c.refuse(s.Failed < was.Failed, "failed", s.Failed, "cannot decrease the failed counter")
	elastic := indexed(&c.job.Spec) && apiequality.Semantic.DeepEqual(c.job.Spec.Completions, c.job.Spec.Parallelism)
	c.refuse(s.Succeeded < was.Succeeded && !elastic, "succeeded", s.Succeeded, "cannot decrease the succeeded counter")
	c.refuse(s.CompletionTime != nil && was.CompletionTime != nil && !sameTime(s.CompletionTime, was.CompletionTime), "completionTime", s.CompletionTime, "field is immutable")
	resumed := c.was(batchv1.JobSuspended) && slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionFalse
	})
	c.refuse(was.StartTime != nil && !sameTime(s.StartTime, was.StartTime) && !resumed && !isTrue(c.job.Spec.Suspend), "startTime", s.StartTime, "field is immutable for unsuspended job once set")
	met := batchv1.JobSuccessCriteriaMet
	c.refuse(c.was(met) && !c.is(met), "conditions", field.OmitValueType{}, "cannot disable the SuccessCriteriaMet=True condition")
	c.refuse(c.was(batchv1.JobComplete) && !c.was(met) && c.is(met), "conditions", field.OmitValueType{}, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
}
