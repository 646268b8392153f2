package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	resourcehelper "k8s.io/component-helpers/resource"
)

// limitRanger gives containers the requests and limits that the LimitRanges of their namespace have for those who say
// none, and refuses pods, containers and claims out of their ranges.
type limitRanger struct{ objects Objects }

// limitAnnotation tells in a pod what was set.
const limitAnnotation = "kubernetes.io/limit-ranger"

var limitRanges = corev1.SchemeGroupVersion.WithResource("limitranges")

// Mutate implements Mutator.
func (l limitRanger) Mutate(ctx context.Context, r *Request) error {
	pod := newPod(r)
	if pod == nil {
		return nil
	}
	items, err := l.itemsOf(ctx, r)
	if err != nil {
		return err
	}
	var told []string
	for _, item := range items {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for i := range pod.Spec.Containers {
			told = append(told, fillIn("container", &pod.Spec.Containers[i], item)...)
		}
		for i := range pod.Spec.InitContainers {
			told = append(told, fillIn("init container", &pod.Spec.InitContainers[i], item)...)
		}
	}
	if len(told) > 0 {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[limitAnnotation] = "LimitRanger plugin set: " + strings.Join(told, "; ")
	}
	return nil
}

// fillIn sets what the container does not say, and tells what it has set.
func fillIn(what string, c *corev1.Container, item corev1.LimitRangeItem) (told []string) {
	for _, part := range []struct {
		name     string
		list     *corev1.ResourceList
		defaults corev1.ResourceList
	}{{"request", &c.Resources.Requests, item.DefaultRequest}, {"limit", &c.Resources.Limits, item.Default}} {
		var set []string
		for name, quantity := range part.defaults {
			if _, ok := (*part.list)[name]; ok {
				continue
			}
			if *part.list == nil {
				*part.list = corev1.ResourceList{}
			}
			(*part.list)[name] = quantity.DeepCopy()
			set = append(set, string(name))
		}
		if len(set) > 0 {
			slices.Sort(set)
			told = append(told, fmt.Sprintf("%s %s for %s %s", strings.Join(set, ", "), part.name, what, c.Name))
		}
	}
	return told
}

// Validate implements Validator.
func (l limitRanger) Validate(ctx context.Context, r *Request) error {
	var judge func(corev1.LimitRangeItem) []error
	switch o := r.Object.(type) {
	case *corev1.Pod:
		if r.Operation == Create && r.Subresource != "" || r.Operation == Update && r.Subresource != "resize" {
			return nil
		}
		judge = func(item corev1.LimitRangeItem) []error { return judgePod(o, item) }
	case *corev1.PersistentVolumeClaim:
		if r.Subresource != "" {
			return nil
		}
		judge = func(item corev1.LimitRangeItem) []error {
			if item.Type != corev1.LimitTypePersistentVolumeClaim {
				return nil
			}
			return judgeResources(item, o.Spec.Resources.Requests, nil)
		}
	default:
		return nil
	}
	items, err := l.itemsOf(ctx, r)
	if err != nil {
		return err
	}
	var faults []error
	for _, item := range items {
		faults = append(faults, judge(item)...)
	}
	if len(faults) > 0 {
		return refused(r, "%w", utilerrors.NewAggregate(faults))
	}
	return nil
}

func judgePod(pod *corev1.Pod, item corev1.LimitRangeItem) (faults []error) {
	switch item.Type {
	case corev1.LimitTypeContainer:
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			faults = append(faults, judgeResources(item, c.Resources.Requests, c.Resources.Limits)...)
		}
	case corev1.LimitTypePod:
		faults = judgeResources(item, resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}))
	}
	return faults
}

// judgeResources compares requests and limits with one item of a LimitRange. Each bound is complained about once.
func judgeResources(item corev1.LimitRangeItem, requests, limits corev1.ResourceList) (faults []error) {
	check := func(bounds corev1.ResourceList, judge func(bound) error) {
		for _, name := range slices.Sorted(maps.Keys(bounds)) {
			if fault := judge(bound{item.Type, name, bounds[name], requests, limits}); fault != nil {
				faults = append(faults, fault)
			}
		}
	}
	check(item.Min, bound.least)
	check(item.Max, bound.most)
	check(item.MaxLimitRequestRatio, bound.ratio)
	return faults
}

// bound is one quantity of a LimitRange, and what it is about.
type bound struct {
	kind             corev1.LimitType
	name             corev1.ResourceName
	value            resource.Quantity
	requests, limits corev1.ResourceList
}

// least: the request is needed, the limit is not.
func (b bound) least() error {
	request, asked := b.requests[b.name]
	limit, limited := b.limits[b.name]
	switch {
	case !asked:
		return b.missing("minimum", "request")
	case request.Cmp(b.value) < 0:
		return b.passed("minimum", "request", request)
	case limited && limit.Cmp(b.value) < 0:
		return b.passed("minimum", "limit", limit)
	}
	return nil
}

// most: the limit is needed, but that of a claim, which has none.
func (b bound) most() error {
	request, asked := b.requests[b.name]
	limit, limited := b.limits[b.name]
	switch claim := b.kind == corev1.LimitTypePersistentVolumeClaim; {
	case claim && !asked:
		return b.missing("maximum", "request")
	case !claim && !limited:
		return b.missing("maximum", "limit")
	case limit.Cmp(b.value) > 0:
		return b.passed("maximum", "limit", limit)
	case request.Cmp(b.value) > 0:
		return b.passed("maximum", "request", request)
	}
	return nil
}

func (b bound) missing(which, what string) error {
	return fmt.Errorf("%s %s usage per %s is %s.  No %s is specified", which, b.name, b.kind, b.value.String(), what)
}

func (b bound) passed(which, what string, quantity resource.Quantity) error {
	return fmt.Errorf("%s %s usage per %s is %s, but %s is %s", which, b.name, b.kind, b.value.String(), what, quantity.String())
}

// ratio: a limit may be at most so many times the request; both must be there.
func (b bound) ratio() error {
	request, limit := b.requests[b.name], b.limits[b.name]
	wrong := func(what string) error {
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but %s", b.name, b.kind, b.value.String(), what)
	}
	switch {
	case request.IsZero():
		return wrong("no request is specified or request is 0")
	case limit.IsZero():
		return wrong("no limit is specified or limit is 0")
	}
	if ratio := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); ratio > b.value.AsApproximateFloat64() {
		return wrong(fmt.Sprintf("provided ratio is %f", ratio))
	}
	return nil
}

// itemsOf are the items of all LimitRanges of the request's namespace.
func (l limitRanger) itemsOf(ctx context.Context, r *Request) ([]corev1.LimitRangeItem, error) {
	all, err := r.list(ctx, l.objects, limitRanges, r.Namespace)
	if err != nil {
		return nil, err
	}
	var out []corev1.LimitRangeItem
	for _, o := range all {
		out = append(out, o.(*corev1.LimitRange).Spec.Limits...)
	}
	return out, nil
}
