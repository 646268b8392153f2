package registry

import (
	"encoding/json"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// autoscaling/v1 knows CPU alone. What else a v2 object has travels in annotations of the v1 object.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
)

// autoscalersV1 serve the autoscalers of v2 a second time, in the shape of autoscaling/v1.
func autoscalersV1(v2 *Resource) *Resource {
	r := newRow[autoscalingv1.HorizontalPodAutoscaler, autoscalingv1.HorizontalPodAutoscalerList](autoscalingv1.SchemeGroupVersion, "horizontalpodautoscalers", "HorizontalPodAutoscaler")
	r.ShortNames, r.Categories = v2.ShortNames, v2.Categories
	r.Hub, r.ToHub, r.FromHub = v2, autoscalerToV2, autoscalerFromV2
	r.Strategy = Strategy{
		Default: defaulter(func(h *autoscalingv1.HorizontalPodAutoscaler) {
			setPointer(&h.Spec.MinReplicas, 1)
			if _, others := h.Annotations[metricsAnnotation]; !others {
				setPointer(&h.Spec.TargetCPUUtilizationPercentage, 80)
			}
		}),
		Validate: validator(func(h *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
			return asV2(h, nil, validateAutoscaler)
		}),
		ValidateUpdate: updateValidator(func(h, old *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
			return asV2(h, old, validateAutoscaler)
		}),
		UpdateRulesOnly: true,
	}
	status := statusOf(r, func(h, old *autoscalingv1.HorizontalPodAutoscaler) { h.Spec = old.Spec })
	r.Subresources = []Subresource{judged(status, func(h *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
		return asV2(h, nil, func(h, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList { return validateAutoscalerStatus(h) })
	})}
	r.Columns = v2.Columns
	r.Row = func(obj runtime.Object, now time.Time) []any {
		stored, err := autoscalerToV2(obj)
		if err != nil {
			return make([]any, len(v2.Columns))
		}
		return v2.Row(stored, now)
	}
	return r
}

// asV2 lets the rules of v2 judge an object of v1, in the form in which it will be stored: the metrics of the
// annotation, and the percentage of v1 among them. As in Kubernetes, the paths are those of v2.
func asV2(h, old *autoscalingv1.HorizontalPodAutoscaler, judge func(h, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList) field.ErrorList {
	stored, err := autoscalerToV2(h)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations"), h.Annotations, err.Error())}
	}
	if old != nil {
		if was, err := autoscalerToV2(old); err == nil {
			return judge(stored.(*autoscalingv2.HorizontalPodAutoscaler), was.(*autoscalingv2.HorizontalPodAutoscaler))
		}
	}
	return judge(stored.(*autoscalingv2.HorizontalPodAutoscaler), nil)
}

func autoscalerToV2(obj runtime.Object) (runtime.Object, error) {
	h, ok := obj.(*autoscalingv1.HorizontalPodAutoscaler)
	if !ok {
		return nil, fmt.Errorf("convert to autoscaling/v2 HorizontalPodAutoscaler: have a %T", obj)
	}
	h = h.DeepCopy()
	out := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: h.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(h.Spec.ScaleTargetRef),
			MinReplicas:    h.Spec.MinReplicas,
			MaxReplicas:    h.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: h.Status.ObservedGeneration,
			LastScaleTime:      h.Status.LastScaleTime,
			CurrentReplicas:    h.Status.CurrentReplicas,
			DesiredReplicas:    h.Status.DesiredReplicas,
		},
	}
	var metrics []autoscalingv1.MetricSpec
	var current []autoscalingv1.MetricStatus
	for annotation, into := range inOrder(map[string]any{
		metricsAnnotation: &metrics, currentMetricsAnnotation: &current,
		conditionsAnnotation: &out.Status.Conditions, behaviorAnnotation: &out.Spec.Behavior,
	}) {
		if text, ok := out.Annotations[annotation]; ok {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				return nil, fmt.Errorf("annotation %s: %w", annotation, err)
			}
			delete(out.Annotations, annotation)
		}
	}
	for i := range metrics {
		out.Spec.Metrics = append(out.Spec.Metrics, metricToV2(&metrics[i]))
	}
	if n := h.Spec.TargetCPUUtilizationPercentage; n != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, cpuMetric(*n))
	}
	if n := h.Status.CurrentCPUUtilizationPercentage; n != nil && len(current) == 0 {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: n},
			},
		}}
	}
	for i := range current {
		out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, metricStatusToV2(&current[i]))
	}
	return out, nil
}

// cpuMetric is the one metric that v1 has a field for.
func cpuMetric(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}

func autoscalerFromV2(obj runtime.Object) (runtime.Object, error) {
	h, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return nil, fmt.Errorf("convert to autoscaling/v1 HorizontalPodAutoscaler: have a %T", obj)
	}
	h = h.DeepCopy()
	out := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: h.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(h.Spec.ScaleTargetRef),
			MinReplicas:    h.Spec.MinReplicas,
			MaxReplicas:    h.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: h.Status.ObservedGeneration,
			LastScaleTime:      h.Status.LastScaleTime,
			CurrentReplicas:    h.Status.CurrentReplicas,
			DesiredReplicas:    h.Status.DesiredReplicas,
		},
	}
	metrics := foldMetrics(h, &out.Spec)
	current, more := foldCurrent(h, &out.Status)
	for key, part := range inOrder(map[string]struct {
		has   bool
		value any
	}{
		metricsAnnotation:        {len(metrics) > 0, metrics},
		currentMetricsAnnotation: {more, current},
		conditionsAnnotation:     {len(h.Status.Conditions) > 0, h.Status.Conditions},
		behaviorAnnotation:       {h.Spec.Behavior != nil, h.Spec.Behavior},
	}) {
		if part.has {
			if err := annotate(out, key, part.value); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// foldMetrics puts the first target for CPU into the field that v1 has for it, and returns all others.
func foldMetrics(h *autoscalingv2.HorizontalPodAutoscaler, into *autoscalingv1.HorizontalPodAutoscalerSpec) (others []autoscalingv1.MetricSpec) {
	for i := range h.Spec.Metrics {
		m := &h.Spec.Metrics[i]
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil && into.TargetCPUUtilizationPercentage == nil {
			into.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
			continue
		}
		others = append(others, metricFromV2(m))
	}
	return others
}

// foldCurrent puts the use of CPU into the field that v1 has for it, and says whether there is more than that. The raw value
// beside the percentage has no field of its own, so that all are kept if one has it.
func foldCurrent(h *autoscalingv2.HorizontalPodAutoscaler, into *autoscalingv1.HorizontalPodAutoscalerStatus) (all []autoscalingv1.MetricStatus, more bool) {
	for i := range h.Status.CurrentMetrics {
		m := &h.Status.CurrentMetrics[i]
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Current.AverageUtilization != nil {
			into.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
			more = more || m.Resource.Current.AverageValue != nil
		} else {
			more = true
		}
		all = append(all, metricStatusFromV2(m))
	}
	return all, more
}

// annotate keeps a part of a v2 object that v1 has no field for.
func annotate(h *autoscalingv1.HorizontalPodAutoscaler, key string, part any) error {
	text, err := json.Marshal(part)
	if err != nil {
		return err
	}
	if h.Annotations == nil {
		h.Annotations = map[string]string{}
	}
	h.Annotations[key] = string(text)
	return nil
}
