package controllers

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionTaint says what follows for scheduling from a node's condition. Reference: kubernetes.io, "Taints and
// Tolerations", "Taint Nodes by Condition".
type conditionTaint struct {
	condition corev1.NodeConditionType
	status    corev1.ConditionStatus
	key       string
	effects   []corev1.TaintEffect
}

var (
	keepOut        = []corev1.TaintEffect{corev1.TaintEffectNoSchedule}
	keepOutAndMove = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
)

var conditionTaints = []conditionTaint{
	{corev1.NodeReady, corev1.ConditionFalse, corev1.TaintNodeNotReady, keepOutAndMove},
	{corev1.NodeReady, corev1.ConditionUnknown, corev1.TaintNodeUnreachable, keepOutAndMove},
	{corev1.NodeMemoryPressure, corev1.ConditionTrue, corev1.TaintNodeMemoryPressure, keepOut},
	{corev1.NodeDiskPressure, corev1.ConditionTrue, corev1.TaintNodeDiskPressure, keepOut},
	{corev1.NodePIDPressure, corev1.ConditionTrue, corev1.TaintNodePIDPressure, keepOut},
	{corev1.NodeNetworkUnavailable, corev1.ConditionTrue, corev1.TaintNodeNetworkUnavailable, keepOut},
}

// ourTaints are the keys that are set and removed here; all others are people's.
var ourTaints = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable,
}

// wantedTaints are the taints that a node's conditions and its cordon call for. A node that has never reported gets no new
// pods, but loses none.
func wantedTaints(node *corev1.Node) []corev1.Taint {
	var out []corev1.Taint
	reported := false
	for _, c := range node.Status.Conditions {
		reported = reported || c.Type == corev1.NodeReady
		for _, rule := range conditionTaints {
			if c.Type != rule.condition || c.Status != rule.status {
				continue
			}
			for _, effect := range rule.effects {
				out = append(out, corev1.Taint{Key: rule.key, Effect: effect})
			}
		}
	}
	if !reported {
		out = append(out, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}
	if node.Spec.Unschedulable {
		out = append(out, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return out
}

// mergeTaints replaces our taints among the present ones by the wanted. One that stays keeps its time: from there
// tolerationSeconds count.
func mergeTaints(present, wanted []corev1.Taint, now time.Time) (merged []corev1.Taint, changed bool) {
	for _, taint := range present {
		if slices.Contains(ourTaints, taint.Key) && !slices.ContainsFunc(wanted, sameTaint(taint)) {
			changed = true
			continue
		}
		merged = append(merged, taint)
	}
	for _, taint := range wanted {
		if slices.ContainsFunc(present, sameTaint(taint)) {
			continue
		}
		at := metav1.NewTime(now.Truncate(time.Second))
		taint.TimeAdded, changed = &at, true
		merged = append(merged, taint)
	}
	return merged, changed
}

func sameTaint(a corev1.Taint) func(corev1.Taint) bool {
	return func(b corev1.Taint) bool { return a.MatchTaint(&b) }
}

func (n *nodeLifecycle) syncTaints(ctx context.Context, node *corev1.Node) error {
	merged, changed := mergeTaints(node.Spec.Taints, wantedTaints(node), n.now())
	if !changed {
		return nil
	}
	update := node.DeepCopy()
	update.Spec.Taints = merged
	_, err := n.client.CoreV1().Nodes().Update(ctx, update, metav1.UpdateOptions{})
	return err
}
