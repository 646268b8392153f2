package registry

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var statusPath = field.NewPath("status")

// A counter is a number in a status, under the name of its field.
type counter struct {
	name string
	n    int64
}

// optional is a counter that may be absent.
func optional(name string, n *int32) counter {
	if n == nil {
		return counter{name, 0}
	}
	return counter{name, int64(*n)}
}

// counters: none of them is negative.
func counters(list ...counter) field.ErrorList {
	var faults field.ErrorList
	for _, c := range list {
		faults = append(faults, notNegative(statusPath.Child(c.name), c.n)...)
	}
	return faults
}

// parts of a whole are not more than the whole.
func parts(whole counter, list ...counter) field.ErrorList {
	var faults field.ErrorList
	for _, c := range list {
		if c.n > whole.n {
			faults = append(faults, field.Invalid(statusPath.Child(c.name), c.n, "cannot be greater than "+whole.name))
		}
	}
	return faults
}

// onlyGrows is for counters that tell one attempt from the next.
func onlyGrows(name string, n, was *int32) field.ErrorList {
	if was == nil || n != nil && *n >= *was {
		return nil
	}
	return field.ErrorList{field.Invalid(statusPath.Child(name), optional(name, n).n, "cannot be decremented")}
}
