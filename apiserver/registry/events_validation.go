package registry

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateCoreEvent judges an event of the core group. Those with an eventTime come from new
// clients and are held to more.
func validateCoreEvent(e *corev1.Event) field.ErrorList {
	return validateEvent(e, "reportingComponent")
}

func validateEvent(e *corev1.Event, reporter string) field.ErrorList {
	path := field.NewPath("involvedObject", "namespace")
	about := e.InvolvedObject.Namespace
	misplaced := field.ErrorList{field.Invalid(path, about, "does not match event.namespace")}
	if e.EventTime.IsZero() {
		if about != e.Namespace && !(about == "" && e.Namespace == metav1.NamespaceDefault) {
			return misplaced
		}
		return nil
	}
	var faults field.ErrorList
	if about == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem {
		faults = misplaced
	}
	faults = append(faults, required(field.NewPath(reporter), e.ReportingController)...)
	faults = append(faults, qualifiedName(field.NewPath(reporter), e.ReportingController)...)
	for _, part := range []struct {
		name, text string
		limit      int
		optional   bool
	}{
		{"reportingInstance", e.ReportingInstance, 128, false},
		{"action", e.Action, 128, false},
		{"reason", e.Reason, 128, false},
		{"message", e.Message, 1024, true},
	} {
		if !part.optional {
			faults = append(faults, required(field.NewPath(part.name), part.text)...)
		}
		if len(part.text) > part.limit {
			faults = append(faults, field.Invalid(field.NewPath(part.name), "", fmt.Sprintf("can have at most %v characters", part.limit)))
		}
	}
	return faults
}

// validateNewEvent judges an event of events.k8s.io/v1. The deprecated fields are only for reading,
// so that they must be unset on create; an update may carry them along.
func validateNewEvent(e *eventsv1.Event) field.ErrorList {
	core, err := eventToCore(e)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	faults := validateEvent(core.(*corev1.Event), "reportingController")
	if e.ResourceVersion != "" {
		return faults
	}
	if e.EventTime.IsZero() {
		faults = append(faults, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		faults = append(faults, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
	}
	if s := e.Series; s != nil {
		if s.Count < 2 {
			faults = append(faults, field.Invalid(field.NewPath("series", "count"), "", "should be at least 2"))
		}
		if s.LastObservedTime.IsZero() {
			faults = append(faults, field.Required(field.NewPath("series", "lastObservedTime"), ""))
		}
	}
	for name, set := range inOrder(map[string]bool{
		"firstTimestamp": !e.DeprecatedFirstTimestamp.IsZero(), "lastTimestamp": !e.DeprecatedLastTimestamp.IsZero(),
		"count": e.DeprecatedCount != 0, "source": e.DeprecatedSource != corev1.EventSource{},
	}) {
		if set {
			faults = append(faults, field.Invalid(field.NewPath(name), "", "needs to be unset"))
		}
	}
	return faults
}

// validateNewEventUpdate: of an event of events.k8s.io/v1 only the series may go on.
func validateNewEventUpdate(e, old *eventsv1.Event) field.ErrorList {
	var faults field.ErrorList
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"involvedObject", e.Regarding, old.Regarding},
		{"reason", e.Reason, old.Reason},
		{"message", e.Note, old.Note},
		{"source", e.DeprecatedSource, old.DeprecatedSource},
		{"firstTimestamp", e.DeprecatedFirstTimestamp, old.DeprecatedFirstTimestamp},
		{"lastTimestamp", e.DeprecatedLastTimestamp, old.DeprecatedLastTimestamp},
		{"count", e.DeprecatedCount, old.DeprecatedCount},
		{"type", e.Type, old.Type},
		{"action", e.Action, old.Action},
		{"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController},
		{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		if !apiequality.Semantic.DeepEqual(f.now, f.was) {
			faults = append(faults, field.Invalid(field.NewPath(f.name), shown(f.now), apivalidation.FieldImmutableErrorMsg))
		}
	}
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		faults = append(faults, immutable(field.NewPath("eventTime"), e.EventTime, old.EventTime)...)
	}
	return faults
}
