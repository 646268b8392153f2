package docs

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/registry"
)

var update = flag.Bool("update", false, "write the generated part of api.md anew")

const (
	generatedFrom = "<!-- from here on: `make api-docs` -->\n"
	allVerbs      = "create delete deletecollection get list patch update watch"
)

// TestAPITable fails when api.md does not say what the table of resources does.
func TestAPITable(t *testing.T) {
	page, err := os.ReadFile("api.md")
	require.NoError(t, err)
	head, _, found := strings.Cut(string(page), generatedFrom)
	require.True(t, found, "api.md has lost its mark")
	want := head + generatedFrom + apiTable(registry.Builtin(registry.Options{}).Resources())
	if *update {
		require.NoError(t, os.WriteFile("api.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run make api-docs")
}

// apiTable has a table for each group and version.
func apiTable(rows []*registry.Resource) string {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b *registry.Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
	})
	var out strings.Builder
	group := "none"
	for _, r := range rows {
		if gv := r.GroupVersion().String(); gv != group {
			group = gv
			fmt.Fprintf(&out, "\n## %s\n\n| resource | kind | scope | verbs | subresources | short names | kept under |\n|---|---|---|---|---|---|---|\n", gv)
		}
		scope := "cluster"
		if r.Namespaced {
			scope = "namespace"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", r.Resource, r.Kind, scope, verbs(r.Verbs), subresources(r),
			strings.Join(r.ShortNames, ", "), keptUnder(r))
	}
	return out.String()
}

func verbs(list []string) string {
	if list == nil {
		return "all"
	}
	sorted := slices.Sorted(slices.Values(list))
	if text := strings.Join(sorted, " "); text != allVerbs {
		return text
	}
	return "all"
}

func subresources(r *registry.Resource) string {
	var list []string
	for _, s := range r.Subresources {
		list = append(list, fmt.Sprintf("%s (%s)", s.Name, strings.Join(slices.Sorted(slices.Values(s.Verbs)), " ")))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func keptUnder(r *registry.Resource) string {
	switch {
	case r.Answers != nil:
		return "answered, not kept"
	case r.Hub != nil:
		return "`" + r.Hub.Prefix + "` as " + r.Hub.GroupVersion().String()
	}
	return "`" + r.Prefix + "`"
}
