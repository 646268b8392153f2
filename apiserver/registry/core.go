package registry

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// coreRows are the resources of the core group ("/api/v1"). Kinds with much of their own have a file
// of their name; the rest is here.
func coreRows(options Options, events *Resource) []*Resource {
	return []*Resource{
		namespaces(),
		pods(),
		nodes(options),
		services(options),
		endpoints(),
		configMaps(),
		secrets(),
		serviceAccounts(),
		events,
		persistentVolumes(),
		persistentVolumeClaims(),
		replicationControllers(),
		podTemplates(),
		limitRanges(),
		resourceQuotas(),
		bindings(),
		componentStatuses(),
	}
}

func configMaps() *Resource {
	r := newRow[corev1.ConfigMap, corev1.ConfigMapList](corev1.SchemeGroupVersion, "configmaps", "ConfigMap")
	r.ShortNames = []string{"cm"}
	r.Strategy = Strategy{
		NoGeneration:   true,
		Validate:       validator(validateConfigMap),
		ValidateUpdate: updateValidator(validateConfigMapUpdate),
	}
	r.Columns, r.Row = configMapColumns, cells(configMapRow)
	return r
}

func secrets() *Resource {
	r := newRow[corev1.Secret, corev1.SecretList](corev1.SchemeGroupVersion, "secrets", "Secret")
	r.Strategy = Strategy{
		NoGeneration:   true,
		Default:        defaulter(defaultSecret),
		Warnings:       warnings(secretWarnings),
		Validate:       validator(validateSecret),
		ValidateUpdate: updateValidator(validateSecretUpdate),
	}
	r.Fields = fieldSet(func(s *corev1.Secret) fields.Set { return fields.Set{"type": string(s.Type)} })
	r.Columns, r.Row = secretColumns, cells(secretRow)
	return r
}

func defaultSecret(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	// stringData is write-only: it is merged into data and never stored.
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// coreEvents is the row that events are stored under, also those of events.k8s.io.
func coreEvents() *Resource {
	r := newRow[corev1.Event, corev1.EventList](corev1.SchemeGroupVersion, "events", "Event")
	r.ShortNames = []string{"ev"}
	r.Strategy = Strategy{
		NoGeneration:        true,
		AllowCreateOnUpdate: true,
		TTL:                 time.Hour,
		ValidateName:        pathSegment, // old clients name events freely
		Validate:            validator(validateCoreEvent),
	}
	r.Fields = fieldSet(eventFields)
	r.Columns, r.Row = eventColumns, cells(eventRow)
	return r
}

// eventFields are the selectors that kubectl describe and kubectl events rely on.
func eventFields(e *corev1.Event) fields.Set {
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	return fields.Set{
		"involvedObject.kind":            e.InvolvedObject.Kind,
		"involvedObject.namespace":       e.InvolvedObject.Namespace,
		"involvedObject.name":            e.InvolvedObject.Name,
		"involvedObject.uid":             string(e.InvolvedObject.UID),
		"involvedObject.apiVersion":      e.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": e.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       e.InvolvedObject.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         source,
		"type":                           e.Type,
	}
}
