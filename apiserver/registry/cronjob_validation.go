package registry

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // the names of time zones, on a machine that does not have them

	"github.com/robfig/cron/v3"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxNameOfCronJob: the controller appends eleven characters to make the names of jobs.
const maxNameOfCronJob = 52

func validateNewCronJob(c *batchv1.CronJob) field.ErrorList {
	faults := validateCronJob(c, nil)
	if len(c.Name) > maxNameOfCronJob {
		faults = append(faults, field.Invalid(field.NewPath("metadata", "name"), c.Name, fmt.Sprintf("must be no more than %d characters", maxNameOfCronJob)))
	}
	return faults
}

func validateCronJobUpdate(c, old *batchv1.CronJob) field.ErrorList {
	return validateCronJob(c, &old.Spec)
}

// validateCronJob: was is nil for a new one. A time zone that has not changed is not looked up again: the list may
// have become shorter.
func validateCronJob(c *batchv1.CronJob, was *batchv1.CronJobSpec) field.ErrorList {
	spec := &c.Spec
	faults := schedule(specPath.Child("schedule"), spec, was)
	if s := spec.StartingDeadlineSeconds; s != nil {
		faults = append(faults, notNegative(specPath.Child("startingDeadlineSeconds"), *s)...)
	}
	if zone := spec.TimeZone; zone != nil && (was == nil || was.TimeZone == nil || *was.TimeZone != *zone) {
		faults = append(faults, timeZone(specPath.Child("timeZone"), *zone)...)
	}
	faults = append(faults, oneOf(specPath.Child("concurrencyPolicy"), spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	faults = append(faults, cronJobTemplate(specPath.Child("jobTemplate", "spec"), &spec.JobTemplate.Spec)...)
	faults = append(faults, notNegative(specPath.Child("successfulJobsHistoryLimit"), *spec.SuccessfulJobsHistoryLimit)...)
	return append(faults, notNegative(specPath.Child("failedJobsHistoryLimit"), *spec.FailedJobsHistoryLimit)...)
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

// schedule has a field of its own for the time zone; only an old one may go on naming it in the text.
func schedule(path *field.Path, spec, was *batchv1.CronJobSpec) field.ErrorList {
	text := spec.Schedule
	if text == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var faults field.ErrorList
	if err := parseSchedule(text); err != nil {
		faults = append(faults, field.Invalid(path, text, err.Error()))
	}
	switch hasZone, may := strings.Contains(text, "TZ"), was != nil && strings.Contains(was.Schedule, "TZ"); {
	case hasZone && !may:
		faults = append(faults, field.Invalid(path, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	case hasZone && spec.TimeZone != nil:
		faults = append(faults, field.Invalid(path, text, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
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

// zonePart is what may stand between the slashes of a time zone: it becomes a file name.
var zonePart = regexp.MustCompile(`^[A-Za-z.\-_0-9+]{1,14}$`)

// timeZone is a name of the IANA's list.
func timeZone(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Invalid(path, name, "timeZone must be nil or non-empty string")}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			return field.ErrorList{field.Invalid(path, name, "unknown time zone "+name)}
		}
	}
	var faults field.ErrorList
	if strings.EqualFold(name, "Local") {
		faults = append(faults, field.Invalid(path, name, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if _, err := time.LoadLocation(name); err != nil {
		faults = append(faults, field.Invalid(path, name, err.Error()))
	}
	return faults
}
