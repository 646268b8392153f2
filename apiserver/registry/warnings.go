package registry

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A warner is a row's Strategy.Warnings: what Kubernetes accepts and tells the client of, because it is probably a
// mistake. old is nil for a new object.
type warner func(ctx context.Context, obj, old runtime.Object) []string

// warnings adapts a function that needs only the new object.
func warnings[T runtime.Object](f func(T) []string) warner {
	return func(_ context.Context, obj, _ runtime.Object) []string { return f(obj.(T)) }
}

// templateWarnings warns of the pod template of an object, on an update only if it makes a new generation.
func templateWarnings[T runtime.Object](path *field.Path, find func(T) *corev1.PodTemplateSpec) warner {
	return func(_ context.Context, obj, old runtime.Object) []string {
		t := find(obj.(T))
		if t == nil || old != nil && generationOf(obj) == generationOf(old) {
			return nil
		}
		return podWarnings(path, &t.ObjectMeta, &t.Spec)
	}
}

// generationOf tells wishes of one object apart. That of a DaemonSet's template is not the object's.
func generationOf(obj runtime.Object) string {
	m := obj.(metav1.Object) // every object of a row is one
	if _, ok := obj.(*appsv1.DaemonSet); ok {
		return m.GetAnnotations()[appsv1.DeprecatedTemplateGeneration]
	}
	return fmt.Sprint(m.GetGeneration())
}

// namingPods adds a warning of a new object whose name is not fit for the host names of its pods.
func namingPods(w warner) warner {
	return func(ctx context.Context, obj, old runtime.Object) []string {
		if old != nil {
			return w(ctx, obj, old)
		}
		return append(nameWarnings(obj.(metav1.Object), "Pod names and hostnames"), w(ctx, obj, old)...)
	}
}

func nameWarnings(m metav1.Object, use string) []string {
	if faults := validation.IsDNS1123Label(m.GetName()); len(faults) > 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in %s, which can result in surprising behavior; a DNS label is recommended: %v", use, faults)}
	}
	return nil
}

// deprecatedLabels of nodes, with what to do instead.
var deprecatedLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  `deprecated since v1.9`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": `deprecated since v1.22; use Taints and Tolerations instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// nodeTermWarnings looks at a term that selects nodes. Values of a mere preference are not validated, and warned of.
func nodeTermWarnings(path *field.Path, term corev1.NodeSelectorTerm, preferred bool) []string {
	var out []string
	for i, e := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		if advice, ok := deprecatedLabels[e.Key]; ok {
			out = append(out, fmt.Sprintf("%s: %s is %s", at.Child("key"), e.Key, advice))
		}
		if !preferred {
			continue
		}
		for j, value := range e.Values {
			for _, fault := range validation.IsValidLabelValue(value) {
				out = append(out, fmt.Sprintf("%s: %s is invalid, %s", at.Child("values").Index(j), value, fault))
			}
		}
	}
	return out
}

// fractionWarning: bytes are whole.
func fractionWarning(path *field.Path, list corev1.ResourceList, name corev1.ResourceName) []string {
	if q, ok := list[name]; ok && q.MilliValue()%1000 != 0 {
		return []string{fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", path.Key(string(name)), q.String())}
	}
	return nil
}
