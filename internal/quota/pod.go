package quota

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

var podCount = countName(corev1.Resource("pods"))

// podNames are the quota resources of pods, beside huge pages and extended resources.
var podNames = []corev1.ResourceName{
	podCount, corev1.ResourcePods,
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
}

// Prefixes of quota resources.
const (
	requestsPrefix = corev1.DefaultResourceRequestsPrefix
	limitsPrefix   = "limits."
)

// podMeasure is that of pods. A pod that has come to its end counts as an object alone.
func podMeasure() *Measure {
	return &Measure{
		Resource: corev1.Resource("pods"),
		tracks: func(name corev1.ResourceName) bool {
			asked, requests := strings.CutPrefix(string(name), requestsPrefix)
			return slices.Contains(podNames, name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
				requests && (strings.HasPrefix(asked, corev1.ResourceHugePagesPrefix) || extended(asked))
		},
		usage: func(obj runtime.Object, now time.Time) corev1.ResourceList {
			pod, ok := obj.(*corev1.Pod)
			if !ok {
				return corev1.ResourceList{podCount: one()}
			}
			return podUsage(pod, now)
		},
		inScope: func(scope corev1.ScopedResourceSelectorRequirement, obj runtime.Object) bool {
			pod, ok := obj.(*corev1.Pod)
			return ok && podInScope(scope, pod)
		},
		demands: func(names []corev1.ResourceName, obj runtime.Object) error {
			pod, ok := obj.(*corev1.Pod)
			if !ok {
				return nil
			}
			return podDemands(names, pod)
		},
		grows: func(subresource string, obj, old runtime.Object) bool {
			now, ok := obj.(*corev1.Pod)
			before, too := old.(*corev1.Pod)
			return ok && too && (subresource == "resize" || subresource == "" && terminating(now) != terminating(before))
		},
	}
}

// extended says whether a resource is none of Kubernetes' own, or the implicit one of a device class.
func extended(name string) bool {
	return strings.Contains(name, "/") &&
		(!strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) || strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix))
}

func podUsage(pod *corev1.Pod, now time.Time) corev1.ResourceList {
	out := corev1.ResourceList{podCount: one()}
	if over(pod, now) {
		return out
	}
	out[corev1.ResourcePods] = one()
	options := resource.PodResourcesOptions{UseStatusResources: true}
	for name, amount := range resource.PodRequests(pod, options) {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			out[name] = amount
			out[requestsPrefix+name] = amount
		case extended(string(name)):
			out[requestsPrefix+name] = amount
		}
	}
	for name, amount := range resource.PodLimits(pod, options) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			out[limitsPrefix+name] = amount
		}
	}
	return out
}

// over says whether a pod has come to its end, or should have: one on a lost node would else keep others from coming.
func over(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	end, grace := pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	return end != nil && grace != nil && now.After(end.Add(time.Duration(*grace)*time.Second))
}

// podInScope: see https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes.
func podInScope(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return terminating(pod)
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminating(pod)
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return looksElsewhere(pod.Spec.Affinity)
	case corev1.ResourceQuotaScopePriorityClass:
		var class []string
		if pod.Spec.PriorityClassName != "" {
			class = []string{pod.Spec.PriorityClassName}
		}
		return named(scope, class)
	}
	return false
}

// terminating: the pod ends by itself, after a time.
func terminating(pod *corev1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

func bestEffort(pod *corev1.Pod) bool {
	if class := pod.Status.QOSClass; class != "" {
		return class == corev1.PodQOSBestEffort
	}
	asks := func(r corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			if list.Cpu().Sign() > 0 || list.Memory().Sign() > 0 {
				return true
			}
		}
		return false
	}
	if r := pod.Spec.Resources; r != nil && asks(*r) {
		return false
	}
	asking := func(c corev1.Container) bool { return asks(c.Resources) }
	return !slices.ContainsFunc(pod.Spec.Containers, asking) && !slices.ContainsFunc(pod.Spec.InitContainers, asking)
}

// looksElsewhere: the pod wants to be near, or far from, pods of other namespaces.
func looksElsewhere(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if a := affinity.PodAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}

// demanded are the resources that every container must say something about if a quota limits them. It was to be so
// for no others, since what a LimitRange does not fill in is then refused.
var demanded = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
}

// podDemands tells which containers lack what. What the pod says as a whole is enough.
func podDemands(names []corev1.ResourceName, pod *corev1.Pod) error {
	if resource.IsPodLevelResourcesSet(pod) {
		return nil
	}
	var missing []string
	for _, name := range demanded {
		if !slices.Contains(names, name) {
			continue
		}
		var containers []string
		for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range list {
				if !says(&list[i].Resources, name) && !slices.Contains(containers, list[i].Name) {
					containers = append(containers, list[i].Name)
				}
			}
		}
		if len(containers) > 0 {
			slices.Sort(containers)
			missing = append(missing, fmt.Sprintf("%s for: %s", name, strings.Join(containers, ",")))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("must specify %s", strings.Join(missing, "; "))
}

func says(r *corev1.ResourceRequirements, name corev1.ResourceName) bool {
	list := r.Requests
	of, limits := strings.CutPrefix(string(name), limitsPrefix)
	if limits {
		list = r.Limits
	}
	_, ok := list[corev1.ResourceName(strings.TrimPrefix(of, requestsPrefix))]
	return ok
}
