package registry

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// preparePod gives a new pod its first status.
func preparePod(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	p.Spec.DeprecatedServiceAccount = p.Spec.ServiceAccountName
	dropGated(&p.Spec)
	selectByOwnLabels(p)
	defaultPodResources(&p.Spec)
	p.Status.QOSClass = qosClass(&p.Spec)
	if len(p.Spec.SchedulingGates) > 0 {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates", LastTransitionTime: metav1.Now(),
		}}
	}
}

// preparePodUpdate keeps the resources of the pod as a whole if a client that does not know them leaves them out.
func preparePodUpdate(p, old *corev1.Pod) {
	if p.Spec.Resources == nil {
		p.Spec.Resources = old.Spec.Resources.DeepCopy()
	}
	dropGated(&p.Spec)
}

// selectByOwnLabels turns matchLabelKeys and mismatchLabelKeys of the pod into requirements on the labels that it has
// itself, which the scheduler understands.
func selectByOwnLabels(p *corev1.Pod) {
	add := func(s *metav1.LabelSelector, operator metav1.LabelSelectorOperator, keys []string) {
		for _, key := range keys {
			if value, ok := p.Labels[key]; ok && s != nil {
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	term := func(t *corev1.PodAffinityTerm) {
		add(t.LabelSelector, metav1.LabelSelectorOpIn, t.MatchLabelKeys)
		add(t.LabelSelector, metav1.LabelSelectorOpNotIn, t.MismatchLabelKeys)
	}
	terms := func(weighted []corev1.WeightedPodAffinityTerm, list []corev1.PodAffinityTerm) {
		for i := range weighted {
			term(&weighted[i].PodAffinityTerm)
		}
		for i := range list {
			term(&list[i])
		}
	}
	if a := p.Spec.Affinity; a != nil {
		if like := a.PodAffinity; like != nil {
			terms(like.PreferredDuringSchedulingIgnoredDuringExecution, like.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if unlike := a.PodAntiAffinity; unlike != nil {
			terms(unlike.PreferredDuringSchedulingIgnoredDuringExecution, unlike.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		add(c.LabelSelector, metav1.LabelSelectorOpIn, c.MatchLabelKeys)
	}
}

// qosClass: Guaranteed if every container limits cpu and memory and requests as much, BestEffort
// if no container asks for either, Burstable otherwise.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, bestEffort := true, true
	look := func(r corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, request := r.Limits[name], r.Requests[name]
			if !limit.IsZero() || !request.IsZero() {
				bestEffort = false
			}
			if limit.IsZero() || (!request.IsZero() && request.Cmp(limit) != 0) {
				guaranteed = false
			}
		}
	}
	if pod := spec.Resources; pod != nil && (len(pod.Limits) > 0 || len(pod.Requests) > 0) {
		look(*pod) // resources of the pod as a whole decide alone
	} else {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				look(list[i].Resources)
			}
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
