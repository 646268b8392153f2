package registry

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The building blocks of validation. Paths, causes and messages are those of Kubernetes: clients
// show them, and some compare them.

// invalid is one fault per message.
func invalid(path *field.Path, value any, messages []string) field.ErrorList {
	var faults field.ErrorList
	for _, m := range messages {
		faults = append(faults, field.Invalid(path, value, m))
	}
	return faults
}

// required is a fault if value is empty.
func required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// oneOf: value must be there, and one of those allowed.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// supported: value is one of those allowed. Unlike with oneOf, nothing is a value like others.
func supported[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// positiveAmount and validAmount are two ways in which Kubernetes refuses a quantity.
func positiveAmount(path *field.Path, amount resource.Quantity) field.ErrorList {
	if amount.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, amount.String(), "must be greater than zero")}
	}
	return nil
}

func validAmount(path *field.Path, amount resource.Quantity) field.ErrorList {
	if amount.Value() < 0 {
		return field.ErrorList{field.Invalid(path, amount.Value(), "must be a valid resource quantity")}
	}
	return nil
}

func notNegative[T ~int32 | ~int64](path *field.Path, value T) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(value), path)
}

// immutable: the field may not change once it is written.
func immutable(path *field.Path, value, old any) field.ErrorList {
	return apivalidation.ValidateImmutableField(value, old, path)
}

// dnsLabel: a required name of letters, digits and dashes.
func dnsLabel(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return required(path, name)
	}
	return invalid(path, name, validation.IsDNS1123Label(name))
}

func dnsSubdomain(path *field.Path, name string) field.ErrorList {
	return invalid(path, name, validation.IsDNS1123Subdomain(name))
}

func qualifiedName(path *field.Path, name string) field.ErrorList {
	return invalid(path, name, validation.IsQualifiedName(name))
}

func portNumber(path *field.Path, port int32) field.ErrorList {
	return invalid(path, port, validation.IsValidPortNum(int(port)))
}

func portOrName(path *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return portNumber(path, port.IntVal)
}

func fileMode(path *field.Path, mode *int32) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(path, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
	}
	return nil
}

// pathSegment allows any name that fits into a URL.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// inOrder yields the entries of m by key, so that a client that tries again reads the same message.
func inOrder[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// names finds duplicates in a list of names.
type names map[string]bool

func (n names) add(path *field.Path, name string) field.ErrorList {
	if n[name] {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	if name != "" {
		n[name] = true
	}
	return nil
}
