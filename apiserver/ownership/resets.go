package ownership

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kontiki/apiserver/registry"
)

// resetFields leaves out the fields that a request cannot set, and so cannot own: the status through the
// resource itself, everything wished for through the status. nil leaves out nothing.
func resetFields(r *registry.Resource, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	filter := resetFilter(r, r.Subresource(subresource))
	if filter == nil {
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(r.GroupVersion().String()): filter}
}

func resetFilter(r *registry.Resource, sub *registry.Subresource) fieldpath.Filter {
	if sub != nil && sub.Owns != nil {
		return ownedOnly(sub.Owns)
	}
	resets := r.Strategy.Resets
	switch {
	case sub != nil:
		resets = sub.Resets
	case r.Subresource("status") != nil:
		resets = append([]string{"status"}, resets...)
	}
	if len(resets) == 0 {
		return nil
	}
	set := fieldpath.NewSet()
	for _, path := range resets {
		set.Insert(fieldpath.MakePathOrDie(pathElements(path, nil)...))
	}
	return fieldpath.NewExcludeSetFilter(set)
}

func ownedOnly(paths []string) fieldpath.Filter {
	var matchers []*fieldpath.SetMatcher
	for _, path := range paths {
		matchers = append(matchers, fieldpath.MakePrefixMatcherOrDie(pathElements(path, fieldpath.MatchAnyPathElement())...))
	}
	return fieldpath.NewIncludeMatcherFilter(matchers...)
}

// pathElements are the names in a path, with anyItem for each "*".
func pathElements(path string, anyItem any) []any {
	var out []any
	for name := range strings.SplitSeq(path, ".") {
		if name == "*" {
			out = append(out, anyItem)
			continue
		}
		out = append(out, name)
	}
	return out
}
