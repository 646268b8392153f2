package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// maxScore is the best that a scorer gives.
const maxScore = 100.0

// A scorer rates each of the nodes that the pod fits on, from 0 to maxScore. It sees them all, because most ratings are
// relative.
type scorer struct {
	weight float64
	rate   func(pod *podInfo, nodes []*nodeInfo, like labelled) []float64
}

// scorers with Kubernetes' default weights.
var scorers = []scorer{
	{weight: 1, rate: rateLeastAllocated},
	{weight: 1, rate: rateBalanced},
	{weight: 2, rate: rateSpreading},
	{weight: 2, rate: ratePreferredAffinity},
	{weight: 3, rate: rateSoftTaints},
}

// best returns the node with the highest weighted sum; among equals the first in the order given.
func best(pod *podInfo, nodes []*nodeInfo, like labelled) *nodeInfo {
	if len(nodes) == 1 {
		return nodes[0]
	}
	total := make([]float64, len(nodes))
	for _, s := range scorers {
		for i, rating := range s.rate(pod, nodes, like) {
			total[i] += s.weight * rating
		}
	}
	winner := 0
	for i := range total {
		if total[i] > total[winner] {
			winner = i
		}
	}
	return nodes[winner]
}

var scoredResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// useAfter is the fraction of a resource that would be in use with the pod on the node.
func useAfter(pod *podInfo, node *nodeInfo, name corev1.ResourceName) float64 {
	capacity := node.allocatable[name]
	if capacity <= 0 {
		return 1
	}
	return math.Min(1, float64(node.usedScored[name]+pod.scored[name])/float64(capacity))
}

// rateLeastAllocated prefers nodes with much left.
func rateLeastAllocated(pod *podInfo, nodes []*nodeInfo, _ labelled) []float64 {
	return each(nodes, func(node *nodeInfo) float64 {
		free := 0.0
		for _, name := range scoredResources {
			free += 1 - useAfter(pod, node, name)
		}
		return maxScore * free / float64(len(scoredResources))
	})
}

// rateBalanced prefers nodes where CPU and memory would be used to the same degree, so that neither is stranded.
func rateBalanced(pod *podInfo, nodes []*nodeInfo, _ labelled) []float64 {
	return each(nodes, func(node *nodeInfo) float64 {
		cpu, memory := useAfter(pod, node, corev1.ResourceCPU), useAfter(pod, node, corev1.ResourceMemory)
		return maxScore * (1 - math.Abs(cpu-memory)/2)
	})
}

// labelled says whether a pod belongs to the same application: the same controller, or selected by the same Service.
type labelled func(other *corev1.Pod) bool

// sameApplication builds that predicate from the Services of the pod's namespace.
func sameApplication(pod *corev1.Pod, services []*corev1.Service) labelled {
	owner := metav1.GetControllerOfNoCopy(pod)
	var selectors []labels.Selector
	for _, service := range services {
		selector := labels.SelectorFromSet(service.Spec.Selector)
		if len(service.Spec.Selector) > 0 && selector.Matches(labels.Set(pod.Labels)) {
			selectors = append(selectors, selector)
		}
	}
	return func(other *corev1.Pod) bool {
		if other.Namespace != pod.Namespace || other.DeletionTimestamp != nil {
			return false
		}
		if owner != nil && metav1.IsControlledBy(other, &metav1.ObjectMeta{UID: owner.UID}) {
			return true
		}
		for _, selector := range selectors {
			if selector.Matches(labels.Set(other.Labels)) {
				return true
			}
		}
		return false
	}
}

// rateSpreading prefers nodes with few pods of the same application.
func rateSpreading(_ *podInfo, nodes []*nodeInfo, like labelled) []float64 {
	return lessIsBetter(each(nodes, func(node *nodeInfo) float64 {
		count := 0.0
		for _, other := range node.pods {
			if like(other.Pod) {
				count++
			}
		}
		return count
	}))
}

// ratePreferredAffinity sums the weights of the preferred terms that match.
func ratePreferredAffinity(pod *podInfo, nodes []*nodeInfo, _ labelled) []float64 {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil {
		return make([]float64, len(nodes))
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil { // validated on creation; a term that does not parse prefers nothing
		return make([]float64, len(nodes))
	}
	return moreIsBetter(each(nodes, func(node *nodeInfo) float64 { return float64(terms.Score(node.node)) }))
}

// rateSoftTaints counts the PreferNoSchedule taints that the pod does not tolerate.
func rateSoftTaints(pod *podInfo, nodes []*nodeInfo, _ labelled) []float64 {
	return lessIsBetter(each(nodes, func(node *nodeInfo) float64 {
		count := 0.0
		for i := range node.node.Spec.Taints {
			taint := &node.node.Spec.Taints[i]
			if taint.Effect == corev1.TaintEffectPreferNoSchedule &&
				!scheduling.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, taint, false) {
				count++
			}
		}
		return count
	}))
}

func each(nodes []*nodeInfo, rate func(*nodeInfo) float64) []float64 {
	out := make([]float64, len(nodes))
	for i, node := range nodes {
		out[i] = rate(node)
	}
	return out
}

// moreIsBetter scales ratings so that the highest is maxScore; all zero stays so.
func moreIsBetter(ratings []float64) []float64 {
	most := 0.0
	for _, r := range ratings {
		most = math.Max(most, r)
	}
	for i := range ratings {
		if most > 0 {
			ratings[i] *= maxScore / most
		}
	}
	return ratings
}

// lessIsBetter gives maxScore to zero and zero to the highest.
func lessIsBetter(ratings []float64) []float64 {
	ratings = moreIsBetter(ratings)
	for i := range ratings {
		ratings[i] = maxScore - ratings[i]
	}
	return ratings
}
