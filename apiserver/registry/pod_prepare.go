package registry

import (
	corev1 "k8s.io/api/core/v1"
)

// preparePod gives a new pod its first status and does what a normal cluster has admission plugins
// for. Not yet: the projected token volume of the ServiceAccount (it needs token signing), priority
// classes other than the two built-in ones (issue 4), image pull secrets of the ServiceAccount.
func preparePod(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&p.Spec)}
	if p.Spec.ServiceAccountName == "" {
		p.Spec.ServiceAccountName = "default"
	}
	p.Spec.DeprecatedServiceAccount = p.Spec.ServiceAccountName
	setPriority(&p.Spec)
	tolerateFor(&p.Spec, corev1.TaintNodeNotReady)
	tolerateFor(&p.Spec, corev1.TaintNodeUnreachable)
}

// setPriority resolves the priority class. The two names are those every cluster has.
func setPriority(spec *corev1.PodSpec) {
	priority := int32(0)
	switch spec.PriorityClassName {
	case "system-cluster-critical":
		priority = 2000000000
	case "system-node-critical":
		priority = 2000001000
	}
	spec.Priority = &priority
	setPointer(&spec.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// tolerateFor lets the pod stay for five minutes on a node with the taint, unless it says otherwise.
func tolerateFor(spec *corev1.PodSpec, taint string) {
	for _, t := range spec.Tolerations {
		if (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return
		}
	}
	seconds := int64(300)
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
		Key:               taint,
		Operator:          corev1.TolerationOpExists,
		Effect:            corev1.TaintEffectNoExecute,
		TolerationSeconds: &seconds,
	})
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
