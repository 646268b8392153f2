package registry

import (
	"context"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	specPath     = field.NewPath("spec")
	templateSpec = field.NewPath("spec", "template", "spec") // of a workload
)

// validatePod judges a pod by itself, on create and on update.
func validatePod(p *corev1.Pod) field.ErrorList {
	faults := validatePodSpec(specPath, &p.Spec)
	if grace := p.Spec.TerminationGracePeriodSeconds; grace != nil {
		faults = append(faults, notNegative(specPath.Child("terminationGracePeriodSeconds"), *grace)...)
	}
	faults = append(faults, trimmedImages(specPath.Child("containers"), p.Spec.Containers)...)
	faults = append(faults, trimmedImages(specPath.Child("initContainers"), p.Spec.InitContainers)...)
	if p.Spec.NodeName != "" && len(p.Spec.SchedulingGates) > 0 {
		faults = append(faults, field.Forbidden(specPath.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	if p.ResourceVersion == "" && len(p.Spec.EphemeralContainers) > 0 { // a new pod
		faults = append(faults, field.Forbidden(specPath.Child("ephemeralContainers"), "cannot be set on create"))
	}
	return faults
}

// trimmedImages: pod templates may carry such names, pods may not.
func trimmedImages(path *field.Path, containers []corev1.Container) field.ErrorList {
	var faults field.ErrorList
	for i, c := range containers {
		if strings.TrimSpace(c.Image) != c.Image {
			faults = append(faults, field.Invalid(path.Index(i).Child("image"), c.Image, "must not have leading or trailing whitespace"))
		}
	}
	return faults
}

// changeable is what a pod update may touch, in Kubernetes' words.
const changeable = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validatePodUpdate: a pod runs as it was created, but for its images, a shorter deadline, more
// tolerations and fewer scheduling gates. Not yet: node selectors of gated pods, which may grow.
func validatePodUpdate(p, old *corev1.Pod) field.ErrorList {
	faults := sameContainers(specPath.Child("containers"), p.Spec.Containers, old.Spec.Containers)
	faults = append(faults, sameContainers(specPath.Child("initContainers"), p.Spec.InitContainers, old.Spec.InitContainers)...)
	if len(faults) > 0 {
		return faults
	}
	faults = deadlineUpdate(specPath.Child("activeDeadlineSeconds"), p.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds)
	faults = append(faults, tolerationsUpdate(specPath.Child("tolerations"), p.Spec.Tolerations, old.Spec.Tolerations)...)
	faults = append(faults, gatesUpdate(specPath.Child("schedulingGates"), p.Spec.SchedulingGates, old.Spec.SchedulingGates)...)

	rest := p.Spec.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds, rest.Tolerations, rest.SchedulingGates = old.Spec.ActiveDeadlineSeconds, old.Spec.Tolerations, old.Spec.SchedulingGates
	if was := old.Spec.TerminationGracePeriodSeconds; was != nil && *was < 0 {
		rest.TerminationGracePeriodSeconds = was
	}
	if !apiequality.Semantic.DeepEqual(*rest, old.Spec) {
		faults = append(faults, field.Forbidden(specPath, fmt.Sprintf("pod updates may not change fields other than %s\n%v", changeable, diff.Diff(old.Spec, *rest))))
	}
	return faults
}

func sameContainers(path *field.Path, containers, old []corev1.Container) field.ErrorList {
	if len(containers) != len(old) {
		return field.ErrorList{field.Forbidden(path, "pod updates may not add or remove containers")}
	}
	return nil
}

func deadlineUpdate(path *field.Path, seconds, old *int64) field.ErrorList {
	switch {
	case seconds == nil && old != nil:
		return field.ErrorList{field.Invalid(path, seconds, "must not update from a positive integer to nil value")}
	case seconds == nil:
		return nil
	case *seconds < 0 || *seconds > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *seconds, validation.InclusiveRangeError(0, math.MaxInt32))}
	case old != nil && *old < *seconds:
		return field.ErrorList{field.Invalid(path, *seconds, "must be less than or equal to previous value")}
	}
	return nil
}

// tolerationsUpdate: each old one is still there, perhaps for another time.
func tolerationsUpdate(path *field.Path, tolerations, old []corev1.Toleration) field.ErrorList {
	have := map[corev1.Toleration]bool{}
	for _, t := range tolerations {
		t.TolerationSeconds = nil
		have[t] = true
	}
	for _, t := range old {
		t.TolerationSeconds = nil
		if !have[t] {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

func gatesUpdate(path *field.Path, gates, old []corev1.PodSchedulingGate) field.ErrorList {
	var faults field.ErrorList
	had := map[string]bool{}
	for _, g := range old {
		had[g.Name] = true
	}
	for i, g := range gates {
		if !had[g.Name] {
			faults = append(faults, field.Forbidden(path.Index(i).Child("name"), fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", g.Name)))
		}
	}
	return faults
}

// validatePodStatus judges what the node agent or the scheduler reports. A pod that has ended stays so.
// Not yet: transitions of single containers.
func validatePodStatus(_ context.Context, obj, old runtime.Object) field.ErrorList {
	p, was := obj.(*corev1.Pod), old.(*corev1.Pod)
	status := field.NewPath("status")
	var faults field.ErrorList
	for i, c := range p.Status.Conditions {
		faults = append(faults, qualifiedName(status.Child("conditions").Index(i).Child("type"), string(c.Type))...)
	}
	for i, ip := range p.Status.PodIPs {
		faults = append(faults, validation.IsValidIP(status.Child("podIPs").Index(i), ip.IP)...)
	}
	if was.Status.QOSClass != "" && p.Status.QOSClass != was.Status.QOSClass {
		faults = append(faults, immutable(status.Child("qosClass"), p.Status.QOSClass, was.Status.QOSClass)...)
	}
	return faults
}

// validateEphemeralUpdate: debugging containers may be added, not changed or taken away.
func validateEphemeralUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	p, was := obj.(*corev1.Pod), old.(*corev1.Pod)
	path := specPath.Child("ephemeralContainers")
	faults := validatePodSpec(specPath, &p.Spec)
	now := map[string]*corev1.EphemeralContainer{}
	for i := range p.Spec.EphemeralContainers {
		now[p.Spec.EphemeralContainers[i].Name] = &p.Spec.EphemeralContainers[i]
	}
	for i := range was.Spec.EphemeralContainers {
		before := &was.Spec.EphemeralContainers[i]
		switch after := now[before.Name]; {
		case after == nil:
			faults = append(faults, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", before.Name)))
		case !apiequality.Semantic.DeepEqual(before, after):
			faults = append(faults, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", before.Name, diff.Diff(*before, *after))))
		}
	}
	return faults
}
