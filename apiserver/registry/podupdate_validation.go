package registry

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// changeable is what a pod update may touch, in Kubernetes' words.
const changeable = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validatePodUpdate: a pod runs as it was created, but for its images, a shorter deadline, more tolerations and
// fewer scheduling gates. While it has gates, it may also be tied to fewer nodes.
func validatePodUpdate(p, old *corev1.Pod) field.ErrorList {
	annotations := field.NewPath("metadata", "annotations")
	faults := podAnnotationUpdates(annotations, p.Annotations, old.Annotations)
	faults = append(faults, podAnnotations(annotations, p.Annotations, &p.Spec)...)
	now, was := &p.Spec, &old.Spec
	for _, list := range []struct {
		child    string
		now, was []corev1.Container
	}{{"containers", now.Containers, was.Containers}, {"initContainers", now.InitContainers, was.InitContainers}} {
		path := specPath.Child(list.child)
		if len(list.now) != len(list.was) {
			return append(faults, field.Forbidden(path, "pod updates may not add or remove containers"))
		}
		for i := range list.now { // once more: Kubernetes says it twice
			faults = append(faults, required(path.Index(i).Child("image"), list.now[i].Image)...)
			faults = append(faults, trimmedImage(path.Index(i), &list.now[i])...)
		}
	}
	deadline, final := deadlineUpdate(specPath.Child("activeDeadlineSeconds"), now.ActiveDeadlineSeconds, was.ActiveDeadlineSeconds)
	faults = append(faults, deadline...)
	if final {
		return faults
	}
	faults = append(faults, tolerationsUpdate(specPath.Child("tolerations"), now.Tolerations, was.Tolerations)...)
	faults = append(faults, gatesUpdate(specPath.Child("schedulingGates"), now.SchedulingGates, was.SchedulingGates)...)
	if apiequality.Semantic.DeepEqual(*now, *was) {
		return faults
	}
	rest := withoutChangeable(now, was)
	if len(was.SchedulingGates) > 0 {
		faults = append(faults, nodesUpdate(rest, was)...)
	}
	if !apiequality.Semantic.DeepEqual(*rest, *was) {
		faults = append(faults, field.Forbidden(specPath, fmt.Sprintf("pod updates may not change fields other than %s\n%v", changeable, diff.Diff(shown(was), shown(rest)))))
	}
	return faults
}

// withoutChangeable is a copy of now in which all that may change is as it was.
func withoutChangeable(now, was *corev1.PodSpec) *corev1.PodSpec {
	rest := now.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = was.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = was.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds, rest.Tolerations, rest.SchedulingGates = was.ActiveDeadlineSeconds, was.Tolerations, was.SchedulingGates
	if g := was.TerminationGracePeriodSeconds; g != nil && *g < 0 && rest.TerminationGracePeriodSeconds != nil && *rest.TerminationGracePeriodSeconds == 1 {
		rest.TerminationGracePeriodSeconds = g
	}
	return rest
}

// deadlineUpdate: a deadline may only come nearer. The second result says that no more is looked at.
func deadlineUpdate(path *field.Path, seconds, old *int64) (field.ErrorList, bool) {
	switch {
	case seconds == nil && old != nil:
		return field.ErrorList{field.Invalid(path, seconds, "must not update from a positive integer to nil value")}, false
	case seconds == nil:
		return nil, false
	case *seconds < 0 || *seconds > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *seconds, validation.InclusiveRangeError(0, math.MaxInt32))}, true
	case old != nil && *old < *seconds:
		return field.ErrorList{field.Invalid(path, *seconds, "must be less than or equal to previous value")}, true
	}
	return nil, false
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
	return validateTolerations(path, tolerations)
}

func gatesUpdate(path *field.Path, gates, old []corev1.PodSchedulingGate) field.ErrorList {
	var faults field.ErrorList
	for i, g := range gates {
		if !slices.Contains(old, g) {
			faults = append(faults, field.Forbidden(path.Index(i).Child("name"), fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", g.Name)))
		}
	}
	return faults
}

// nodesUpdate judges where a gated pod may run from now on, and puts the old rules back into rest.
func nodesUpdate(rest, was *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	if path := specPath.Child("nodeSelector"); !apiequality.Semantic.DeepEqual(rest.NodeSelector, was.NodeSelector) {
		for key, value := range was.NodeSelector {
			if is, ok := rest.NodeSelector[key]; !ok || is != value {
				faults = append(faults, field.Invalid(path, rest.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
				break
			}
		}
		rest.NodeSelector = was.NodeSelector
	}
	nodes := func(a *corev1.Affinity) *corev1.NodeAffinity {
		if a == nil {
			return nil
		}
		return a.NodeAffinity
	}
	before, after := nodes(was.Affinity), nodes(rest.Affinity)
	if apiequality.Semantic.DeepEqual(before, after) {
		return faults
	}
	faults = append(faults, nodeAffinityUpdate(specPath.Child("affinity", "nodeAffinity"), after, before)...)
	setPointer(&rest.Affinity, corev1.Affinity{})
	rest.Affinity.NodeAffinity = before
	if was.Affinity == nil && *rest.Affinity == (corev1.Affinity{}) {
		rest.Affinity = nil
	}
	return faults
}

// nodeAffinityUpdate: each term may only get more requirements, and there are as many terms as before.
func nodeAffinityUpdate(path *field.Path, now, was *corev1.NodeAffinity) field.ErrorList {
	terms := func(n *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
		if n == nil || n.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return nil
		}
		return n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	before, after := terms(was), terms(now)
	at := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	switch {
	case len(before) == 0:
		return nil
	case len(before) != len(after):
		return field.ErrorList{field.Invalid(at, shown(after), "no additions/deletions to non-empty NodeSelectorTerms list are allowed")}
	}
	var faults field.ErrorList
	for i := range after {
		if !narrower(after[i], before[i]) {
			faults = append(faults, field.Invalid(at.Index(i), shown(after[i]), "only additions are allowed (no mutations or deletions)"))
		}
	}
	return faults
}

// narrower: a term without requirements selects nothing, and stays so.
func narrower(now, was corev1.NodeSelectorTerm) bool {
	if len(was.MatchExpressions)+len(was.MatchFields) == 0 {
		return len(now.MatchExpressions)+len(now.MatchFields) == 0
	}
	begins := func(now, was []corev1.NodeSelectorRequirement) bool {
		return len(now) >= len(was) && apiequality.Semantic.DeepEqual(now[:len(was)], was)
	}
	return begins(now.MatchExpressions, was.MatchExpressions) && begins(now.MatchFields, was.MatchFields)
}
