package registry

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Every feature gate that the generated rules ask for has a value.
func TestDeclaredGates(t *testing.T) {
	files, err := filepath.Glob("validations/*/zz_generated.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	asked := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`obj, oldObj, "(\w+)", (?:true|false)`).FindAllSubmatch(text, -1) {
			asked[string(match[1])] = true
		}
	}
	for gate := range asked {
		require.Contains(t, gates, gate)
	}
	for gate := range gates {
		require.Contains(t, asked, gate, "no rule asks for it any more")
	}
}

// A fault that is written by hand and declared is reported once, in the declared words; what is only tried out is
// not reported.
func TestMergedFaults(t *testing.T) {
	path := field.NewPath("spec", "a")
	own := field.ErrorList{field.Required(path, "ours"), field.Invalid(path, "x", "one cause")}
	declared := field.ErrorList{field.Required(path, "theirs"), field.Invalid(path, "x", "another cause"),
		field.Required(path.Child("b"), "another path"), field.Required(path.Child("c"), "").MarkAlpha()}
	require.Equal(t, field.ErrorList{own[1], declared[0], declared[1], declared[2]}, merged(context.Background(), slices.Clone(own), slices.Clone(declared)))
}

// What is declared, beside the few rules by hand that the rows of resource.k8s.io have.
func TestDeclaredRules(t *testing.T) {
	table := Builtin(Options{})
	r := table.Lookup(in("resource.k8s.io", "resourceclaims"))
	obj := decoded(t, table, r.GroupVersionResource, `{"metadata":{"name":"c"},"spec":{"devices":{"requests":[
		{"name":"a","exactly":{}},{"name":"b","firstAvailable":[{"name":"c"}]}]}}}`)
	require.Equal(t, []string{
		"spec.devices.requests[0].exactly.deviceClassName: Required value",
		"spec.devices.requests[1].firstAvailable[0].deviceClassName: Required value",
	}, faultsOf(r.Strategy.Validate(context.Background(), obj)))
}
