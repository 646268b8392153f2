package registry

import (
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// autoscalingRows: objects are stored as v2; v1 is a view of them (autoscaling_v1.go). Not yet: a controller
// that scales.
func autoscalingRows() []*Resource {
	r := newRow[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList](autoscalingv2.SchemeGroupVersion, "horizontalpodautoscalers", "HorizontalPodAutoscaler")
	r.ShortNames, r.Categories = []string{"hpa"}, []string{"all"}
	r.Strategy = Strategy{
		Default:         defaulter(defaultAutoscaler),
		Validate:        validator(func(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList { return validateAutoscaler(h, nil) }),
		ValidateUpdate:  updateValidator(validateAutoscaler),
		UpdateRulesOnly: true,
	}
	r.Subresources = []Subresource{judged(statusOf(r, func(h, old *autoscalingv2.HorizontalPodAutoscaler) { h.Spec = old.Spec }), validateAutoscalerStatus)}
	r.Columns, r.Row = columns([]string{"Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"}), cells(autoscalerRow)
	return []*Resource{r, autoscalersV1(r)}
}

// defaultAutoscaler: one pod at least, and 80 % of the requested CPU unless another metric is given.
func defaultAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	setPointer(&h.Spec.MinReplicas, 1)
	if len(h.Spec.Metrics) == 0 {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			},
		}}
	}
	if b := h.Spec.Behavior; b != nil {
		setPointer(&b.ScaleUp, autoscalingv2.HPAScalingRules{})
		setPointer(&b.ScaleUp.StabilizationWindowSeconds, 0)
		defaultScaling(b.ScaleUp,
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
		setPointer(&b.ScaleDown, autoscalingv2.HPAScalingRules{})
		defaultScaling(b.ScaleDown, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	}
}

func defaultScaling(rules *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	setPointer(&rules.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if rules.Policies == nil {
		rules.Policies = policies
	}
}

func autoscalerRow(h *autoscalingv2.HorizontalPodAutoscaler, now time.Time) []any {
	least := unset
	if h.Spec.MinReplicas != nil {
		least = fmt.Sprint(*h.Spec.MinReplicas)
	}
	return []any{h.Name, h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name, metricsCell(h), least,
		int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas), age(&h.ObjectMeta, now)}
}

// metricsCell shows the first two metrics as "name: now/wanted".
func metricsCell(h *autoscalingv2.HorizontalPodAutoscaler) string {
	var list []string
	for i, m := range h.Spec.Metrics {
		var status autoscalingv2.MetricStatus
		if i < len(h.Status.CurrentMetrics) {
			status = h.Status.CurrentMetrics[i]
		}
		list = append(list, metricCell(m, status))
	}
	switch n := len(list); {
	case n == 0:
		return none
	case n > 2:
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:2], ", "), n-2)
	}
	return strings.Join(list, ", ")
}

func metricCell(m autoscalingv2.MetricSpec, s autoscalingv2.MetricStatus) string {
	switch {
	case m.Resource != nil:
		var now *autoscalingv2.MetricValueStatus
		if s.Resource != nil {
			now = &s.Resource.Current
		}
		return string(m.Resource.Name) + ": " + usage(m.Resource.Target, now)
	case m.ContainerResource != nil:
		var now *autoscalingv2.MetricValueStatus
		if s.ContainerResource != nil {
			now = &s.ContainerResource.Current
		}
		return string(m.ContainerResource.Name) + ": " + usage(m.ContainerResource.Target, now)
	case m.Pods != nil:
		var now *resource.Quantity
		if s.Pods != nil {
			now = s.Pods.Current.AverageValue
		}
		return amount(now) + "/" + amount(m.Pods.Target.AverageValue)
	case m.Object != nil:
		var now autoscalingv2.MetricValueStatus
		if s.Object != nil {
			now = s.Object.Current
		}
		return valued(m.Object.Target, now)
	case m.External != nil:
		var now autoscalingv2.MetricValueStatus
		if s.External != nil {
			now = s.External.Current
		}
		return valued(m.External.Target, now)
	}
	return "<unknown type>"
}

func usage(target autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		if now == nil {
			return unknown + "/" + amount(target.AverageValue)
		}
		return amount(now.AverageValue) + "/" + amount(target.AverageValue)
	}
	current, wanted := unknown, "<auto>"
	if now != nil && now.AverageUtilization != nil {
		current = fmt.Sprintf("%d%%", *now.AverageUtilization)
	}
	if target.AverageUtilization != nil {
		wanted = fmt.Sprintf("%d%%", *target.AverageUtilization)
	}
	return current + "/" + wanted
}

func valued(target autoscalingv2.MetricTarget, now autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return amount(now.AverageValue) + "/" + amount(target.AverageValue) + " (avg)"
	}
	return amount(now.Value) + "/" + amount(target.Value)
}

func amount(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return quantityText(*q)
}
