package registry

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateAutoscaler: old is nil for a new one.
func validateAutoscaler(h, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	s := &h.Spec
	var faults field.ErrorList
	most := specPath.Child("maxReplicas")
	if least := s.MinReplicas; least != nil && *least < 0 {
		faults = append(faults, field.Invalid(specPath.Child("minReplicas"), *least, "must be greater than or equal to 0"))
	}
	switch {
	case s.MaxReplicas == 0:
		faults = append(faults, field.Required(most, "must be set and greater than 0"))
	case s.MaxReplicas < 0:
		faults = append(faults, field.Invalid(most, s.MaxReplicas, "must be greater than or equal to 1"))
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		faults = append(faults, field.Invalid(most, s.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	target := specPath.Child("scaleTargetRef")
	faults = append(faults, scaledReference(target, &s.ScaleTargetRef)...)
	if old == nil || old.Spec.ScaleTargetRef.APIVersion != s.ScaleTargetRef.APIVersion || old.Spec.ScaleTargetRef.Kind != s.ScaleTargetRef.Kind {
		// Of the core group, ReplicationControllers alone can be scaled.
		faults = append(faults, groupVersion(target, s.ScaleTargetRef.APIVersion, s.ScaleTargetRef.Kind == "ReplicationController")...)
	}
	metrics, fromOutside := specPath.Child("metrics"), false
	for i := range s.Metrics {
		m := &s.Metrics[i]
		faults = append(faults, validateMetric(metrics.Index(i), m)...)
		fromOutside = fromOutside || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if s.MinReplicas != nil && *s.MinReplicas == 0 && !fromOutside { // no pod is left that could be measured
		faults = append(faults, field.Forbidden(metrics, "must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	if b := s.Behavior; b != nil {
		faults = append(faults, scalingRules(specPath.Child("behavior", "scaleUp"), b.ScaleUp)...)
		faults = append(faults, scalingRules(specPath.Child("behavior", "scaleDown"), b.ScaleDown)...)
	}
	return faults
}

func scaledReference(path *field.Path, ref *autoscalingv2.CrossVersionObjectReference) field.ErrorList {
	var faults field.ErrorList
	for child, name := range inOrder(map[string]string{"kind": ref.Kind, "name": ref.Name}) {
		faults = append(faults, required(path.Child(child), name)...)
		if name != "" {
			faults = append(faults, invalid(path.Child(child), name, pathSegment(name, false))...)
		}
	}
	return faults
}

func groupVersion(path *field.Path, version string, mayBeCore bool) field.ErrorList {
	at := path.Child("apiVersion")
	switch gv, err := schema.ParseGroupVersion(version); {
	case err != nil:
		return field.ErrorList{field.Invalid(at, version, err.Error())}
	case gv.Group == "" && !mayBeCore:
		return field.ErrorList{field.Invalid(at, version, "apiVersion must specify API group")}
	}
	return nil
}

// metricParts are the fields of a metric, in the order in which they are looked at.
func metricParts(m *autoscalingv2.MetricSpec) []struct {
	kind  autoscalingv2.MetricSourceType
	child string
	has   bool
} {
	return []struct {
		kind  autoscalingv2.MetricSourceType
		child string
		has   bool
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil},
	}
}

// validateMetric: it has the one part that its type names.
func validateMetric(path *field.Path, m *autoscalingv2.MetricSpec) field.ErrorList {
	var faults field.ErrorList
	if m.Type == "" {
		faults = append(faults, field.Required(path.Child("type"), "must specify a metric source type"))
	}
	known, have := "", 0
	for _, part := range metricParts(m) {
		if part.kind == m.Type {
			known = part.child
		}
		if !part.has {
			continue
		}
		if have++; have == 1 {
			faults = append(faults, metricPart(path.Child(part.child), m)...)
		}
	}
	if known == "" {
		return append(faults, field.NotSupported(path.Child("type"), m.Type, []autoscalingv2.MetricSourceType{
			autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
			autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
		}))
	}
	for _, part := range metricParts(m) {
		switch {
		case part.kind == m.Type && !part.has:
			faults = append(faults, field.Required(path.Child(part.child), "must populate information for the given metric source"))
		case part.kind != m.Type && part.has:
			faults = append(faults, field.Forbidden(path.Child(part.child), "must populate the given metric source only"))
		}
	}
	return faults
}

// metricPart judges the first part that m has, which is at path.
func metricPart(path *field.Path, m *autoscalingv2.MetricSpec) field.ErrorList {
	goal := path.Child("target")
	switch {
	case m.Object != nil:
		faults := scaledReference(path.Child("describedObject"), &m.Object.DescribedObject)
		faults = append(faults, groupVersion(path.Child("describedObject"), m.Object.DescribedObject.APIVersion, true)...)
		faults = append(faults, metricName(path.Child("metric"), m.Object.Metric.Name)...)
		faults = append(faults, metricTarget(goal, &m.Object.Target)...)
		if t := m.Object.Target; t.Value == nil && t.AverageValue == nil {
			faults = append(faults, field.Required(goal.Child("averageValue"), "must set either a target value or averageValue"))
		}
		return faults
	case m.External != nil:
		faults := metricName(path.Child("metric"), m.External.Metric.Name)
		faults = append(faults, metricTarget(goal, &m.External.Target)...)
		switch t := m.External.Target; {
		case t.Value == nil && t.AverageValue == nil:
			faults = append(faults, field.Required(goal.Child("averageValue"), "must set either a target value for metric or a per-pod target"))
		case t.Value != nil && t.AverageValue != nil:
			faults = append(faults, field.Forbidden(goal.Child("value"), "may not set both a target value for metric and a per-pod target"))
		}
		return faults
	case m.Pods != nil:
		faults := metricName(path.Child("metric"), m.Pods.Metric.Name)
		faults = append(faults, metricTarget(goal, &m.Pods.Target)...)
		if m.Pods.Target.AverageValue == nil {
			faults = append(faults, field.Required(goal.Child("averageValue"), "must specify a positive target averageValue"))
		}
		return faults
	case m.Resource != nil:
		return resourceMetric(path, string(m.Resource.Name), &m.Resource.Target)
	}
	c := m.ContainerResource
	var faults field.ErrorList
	if c.Container == "" {
		faults = append(faults, field.Required(path.Child("container"), "must specify a container"))
	} else {
		faults = append(faults, dnsLabel(path.Child("container"), c.Container)...)
	}
	return append(faults, resourceMetric(path, string(c.Name), &c.Target)...)
}

func resourceMetric(path *field.Path, name string, t *autoscalingv2.MetricTarget) field.ErrorList {
	var faults field.ErrorList
	if name == "" {
		faults = append(faults, field.Required(path.Child("name"), "must specify a resource name"))
	}
	goal := path.Child("target")
	faults = append(faults, metricTarget(goal, t)...)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		faults = append(faults, field.Required(goal.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	case t.AverageUtilization != nil && t.AverageValue != nil:
		faults = append(faults, field.Forbidden(goal.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return faults
}

func metricName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path.Child("name"), "must specify a metric name")}
	}
	return invalid(path.Child("name"), name, pathSegment(name, false))
}

func metricTarget(path *field.Path, t *autoscalingv2.MetricTarget) field.ErrorList {
	var faults field.ErrorList
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	case "":
		faults = append(faults, field.Required(path.Child("type"), "must specify a metric target type"))
		fallthrough
	default:
		faults = append(faults, field.Invalid(path.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	for child, q := range inOrder(map[string]*resource.Quantity{"value": t.Value, "averageValue": t.AverageValue}) {
		if q != nil && q.Sign() != 1 {
			faults = append(faults, field.Invalid(path.Child(child), quantityText(*q), "must be positive"))
		}
	}
	if n := t.AverageUtilization; n != nil && *n < 1 {
		faults = append(faults, field.Invalid(path.Child("averageUtilization"), *n, "must be greater than 0"))
	}
	return faults
}

// scalingRules: how fast. Both times have limits: an hour to look back, half an hour for a policy's period.
func scalingRules(path *field.Path, r *autoscalingv2.HPAScalingRules) field.ErrorList {
	if r == nil {
		return nil
	}
	var faults field.ErrorList
	window := path.Child("stabilizationWindowSeconds")
	switch s := r.StabilizationWindowSeconds; {
	case s == nil:
	case *s < 0:
		faults = append(faults, field.Invalid(window, *s, "must be greater than or equal to zero"))
	case *s > 3600:
		faults = append(faults, field.Invalid(window, *s, "must be less than or equal to 3600"))
	}
	if p := r.SelectPolicy; p != nil {
		faults = append(faults, oneOf(path.Child("selectPolicy"), *p, autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)...)
	}
	if len(r.Policies) == 0 {
		faults = append(faults, field.Required(path.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range r.Policies {
		at := path.Child("policies").Index(i)
		if p.Type != autoscalingv2.PodsScalingPolicy && p.Type != autoscalingv2.PercentScalingPolicy {
			faults = append(faults, field.NotSupported(at.Child("type"), p.Type, []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy}))
		}
		if p.Value <= 0 {
			faults = append(faults, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
		}
		switch period := at.Child("periodSeconds"); {
		case p.PeriodSeconds <= 0:
			faults = append(faults, field.Invalid(period, p.PeriodSeconds, "must be greater than zero"))
		case p.PeriodSeconds > 1800:
			faults = append(faults, field.Invalid(period, p.PeriodSeconds, "must be less than or equal to 1800"))
		}
	}
	if t := r.Tolerance; t != nil && t.Sign() < 0 {
		faults = append(faults, field.Invalid(path.Child("tolerance"), quantityText(*t), "must be greater than or equal to 0"))
	}
	return faults
}

func validateAutoscalerStatus(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	var faults field.ErrorList
	for i, c := range h.Status.Conditions {
		if c.ObservedGeneration != nil {
			faults = append(faults, notNegative(statusPath.Child("conditions").Index(i).Child("observedGeneration"), *c.ObservedGeneration)...)
		}
	}
	return append(faults, counters(counter{"currentReplicas", int64(h.Status.CurrentReplicas)}, counter{"desiredReplicas", int64(h.Status.DesiredReplicas)})...)
}
