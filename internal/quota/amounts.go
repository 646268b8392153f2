package quota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// one is the quantity of things that are counted.
func one() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }

// add adds b to a, which is changed.
func add(a, b corev1.ResourceList) {
	for name, amount := range b {
		sum, ok := a[name]
		if !ok {
			a[name] = amount.DeepCopy()
			continue
		}
		sum = sum.DeepCopy()
		sum.Add(amount)
		a[name] = sum
	}
}

// growth is what is more in now than in before; what is not is left out.
func growth(now, before corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range now {
		more := amount.DeepCopy()
		more.Sub(before[name])
		if more.Sign() > 0 {
			out[name] = more
		}
	}
	return out
}

// only are the amounts of a whose names are in b.
func only(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range a {
		if _, ok := b[name]; ok {
			out[name] = amount.DeepCopy()
		}
	}
	return out
}

// Equal says whether two lists have the same amounts of the same resources.
func Equal(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// text writes amounts as messages do: in order of name, "pods=1,requests.cpu=100m".
func text(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		parts = append(parts, string(name)+"="+amount.String())
	}
	return strings.Join(parts, ",")
}

func namesText(names []corev1.ResourceName) string {
	var parts []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		parts = append(parts, string(name))
	}
	return strings.Join(parts, ",")
}
