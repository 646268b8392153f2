package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// domain is a part of the cluster: the nodes that have this value of a topology label, e.g. {kubernetes.io/hostname node1}.
type domain struct{ key, value string }

// interpod holds what required inter-pod affinity means for one pod, worked out once for all nodes.
type interpod struct {
	affinity, anti []term
	// near has, for each affinity term, the domains with a pod that matches; far for each anti-affinity term.
	near, far []map[domain]bool
	// refused are the domains in which a running pod has an anti-affinity to this one.
	refused map[domain]bool
	// firstOfItsKind: no pod matches the affinity terms anywhere, but this one matches them itself. It may start the group.
	firstOfItsKind bool
}

// term is a parsed PodAffinityTerm.
type term struct {
	key      string
	selector labels.Selector
	// namespaces that count; all says that namespaceSelector is empty and thus matches every one.
	namespaces []string
	byLabel    labels.Selector
}

func parseTerms(owner *corev1.Pod, required []corev1.PodAffinityTerm) []term {
	var out []term
	for _, t := range required {
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if err != nil {
			continue // validated on creation
		}
		parsed := term{key: t.TopologyKey, selector: selector, namespaces: t.Namespaces, byLabel: labels.Nothing()}
		if t.NamespaceSelector != nil {
			if parsed.byLabel, err = metav1.LabelSelectorAsSelector(t.NamespaceSelector); err != nil {
				continue
			}
		} else if len(t.Namespaces) == 0 {
			parsed.namespaces = []string{owner.Namespace}
		}
		out = append(out, parsed)
	}
	return out
}

func (t term) matches(pod *corev1.Pod, namespaceLabels func(string) labels.Set) bool {
	inNamespace := slices.Contains(t.namespaces, pod.Namespace) || t.byLabel.Matches(namespaceLabels(pod.Namespace))
	return inNamespace && t.selector.Matches(labels.Set(pod.Labels))
}

func (t term) domain(node *corev1.Node) (domain, bool) {
	value, ok := node.Labels[t.key]
	return domain{t.key, value}, ok
}

func affinityTerms(pod *corev1.Pod) []term {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return parseTerms(pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return nil
}

func antiAffinityTerms(pod *corev1.Pod) []term {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return parseTerms(pod, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return nil
}

// newInterpod looks at every running pod once.
func newInterpod(pod *podInfo, nodes []*nodeInfo, namespaceLabels func(string) labels.Set) *interpod {
	x := &interpod{affinity: affinityTerms(pod.Pod), anti: antiAffinityTerms(pod.Pod), refused: map[domain]bool{}}
	for range x.affinity {
		x.near = append(x.near, map[domain]bool{})
	}
	for range x.anti {
		x.far = append(x.far, map[domain]bool{})
	}
	for _, node := range nodes {
		for _, other := range node.pods {
			mark(x.affinity, x.near, other.Pod, node.node, namespaceLabels)
			mark(x.anti, x.far, other.Pod, node.node, namespaceLabels)
			for _, t := range antiAffinityTerms(other.Pod) {
				if d, ok := t.domain(node.node); ok && t.matches(pod.Pod, namespaceLabels) {
					x.refused[d] = true
				}
			}
		}
	}
	x.firstOfItsKind = startsGroup(x, pod.Pod, namespaceLabels)
	return x
}

func mark(terms []term, domains []map[domain]bool, other *corev1.Pod, node *corev1.Node, namespaceLabels func(string) labels.Set) {
	for i, t := range terms {
		if d, ok := t.domain(node); ok && t.matches(other, namespaceLabels) {
			domains[i][d] = true
		}
	}
}

func startsGroup(x *interpod, pod *corev1.Pod, namespaceLabels func(string) labels.Set) bool {
	for i, t := range x.affinity {
		if len(x.near[i]) > 0 || !t.matches(pod, namespaceLabels) {
			return false
		}
	}
	return true
}

func (x *interpod) objections(_ *podInfo, node *nodeInfo) []string {
	for i, t := range x.affinity {
		d, ok := t.domain(node.node)
		if !ok || !x.near[i][d] && !x.firstOfItsKind {
			return []string{"node(s) didn't match pod affinity rules"}
		}
	}
	for i, t := range x.anti {
		if d, ok := t.domain(node.node); ok && x.far[i][d] {
			return []string{"node(s) didn't match pod anti-affinity rules"}
		}
	}
	for d := range x.refused {
		if value, ok := node.node.Labels[d.key]; ok && value == d.value {
			return []string{"node(s) didn't satisfy existing pods anti-affinity rules"}
		}
	}
	return nil
}
