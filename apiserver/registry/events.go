package registry

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// eventsRows serve the events of the core group a second time, in the shape of events.k8s.io/v1.
func eventsRows(core *Resource) []*Resource {
	r := newRow[eventsv1.Event, eventsv1.EventList](eventsv1.SchemeGroupVersion, "events", "Event")
	r.ShortNames = []string{"ev"}
	r.Hub, r.ToHub, r.FromHub = core, eventToCore, eventFromCore
	r.Strategy = Strategy{
		NoGeneration:        true,
		AllowCreateOnUpdate: true,
		TTL:                 core.Strategy.TTL,
		Validate:            validator(validateNewEvent),
		ValidateUpdate:      updateValidator(validateNewEventUpdate),
	}
	r.Fields = fieldSet(func(e *eventsv1.Event) fields.Set {
		return fields.Set{
			"regarding.kind":            e.Regarding.Kind,
			"regarding.namespace":       e.Regarding.Namespace,
			"regarding.name":            e.Regarding.Name,
			"regarding.uid":             string(e.Regarding.UID),
			"regarding.apiVersion":      e.Regarding.APIVersion,
			"regarding.resourceVersion": e.Regarding.ResourceVersion,
			"regarding.fieldPath":       e.Regarding.FieldPath,
			"reason":                    e.Reason,
			"reportingController":       e.ReportingController,
			"type":                      e.Type,
		}
	})
	r.Columns, r.Row = eventColumns, func(obj runtime.Object, now time.Time) []any {
		e, err := eventToCore(obj)
		if err != nil {
			return make([]any, len(eventColumns))
		}
		return eventRow(e.(*corev1.Event), now)
	}
	return []*Resource{r}
}

func eventToCore(obj runtime.Object) (runtime.Object, error) {
	e, ok := obj.(*eventsv1.Event)
	if !ok {
		return nil, fmt.Errorf("convert to core/v1 Event: have a %T", obj)
	}
	e = e.DeepCopy()
	out := &corev1.Event{
		ObjectMeta:          e.ObjectMeta,
		InvolvedObject:      e.Regarding,
		Related:             e.Related,
		Reason:              e.Reason,
		Message:             e.Note,
		Type:                e.Type,
		Action:              e.Action,
		EventTime:           e.EventTime,
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
		Source:              e.DeprecatedSource,
		FirstTimestamp:      e.DeprecatedFirstTimestamp,
		LastTimestamp:       e.DeprecatedLastTimestamp,
		Count:               e.DeprecatedCount,
	}
	if s := e.Series; s != nil {
		out.Series = &corev1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	return out, nil
}

func eventFromCore(obj runtime.Object) (runtime.Object, error) {
	e, ok := obj.(*corev1.Event)
	if !ok {
		return nil, fmt.Errorf("convert to events.k8s.io/v1 Event: have a %T", obj)
	}
	e = e.DeepCopy()
	out := &eventsv1.Event{
		ObjectMeta:               e.ObjectMeta,
		Regarding:                e.InvolvedObject,
		Related:                  e.Related,
		Reason:                   e.Reason,
		Note:                     e.Message,
		Type:                     e.Type,
		Action:                   e.Action,
		EventTime:                e.EventTime,
		ReportingController:      e.ReportingController,
		ReportingInstance:        e.ReportingInstance,
		DeprecatedSource:         e.Source,
		DeprecatedFirstTimestamp: e.FirstTimestamp,
		DeprecatedLastTimestamp:  e.LastTimestamp,
		DeprecatedCount:          e.Count,
	}
	if s := e.Series; s != nil {
		out.Series = &eventsv1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	return out, nil
}
