package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// How a kube-apiserver words it: make diff-upstream found these to differ.
func TestSignerNames(t *testing.T) {
	const label = `validating label "~ Bad": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an ` +
		`alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
	for name, want := range map[string][]string{
		"example.com/a.b":                 {},
		"":                                {"signer: Required value"},
		"a.b/c/d":                         {"signer: Invalid value: must be a fully qualified domain and path of the form 'example.com/signer-name'"},
		"~ Bad.a.~ Bad/ok":                {"signer: Invalid value: " + label},
		"~ Bad/ok":                        {"signer: Invalid value: should be a domain with at least two segments separated by dots", "signer: Invalid value: " + label},
		strings.Repeat("a.", 127) + "a/b": {"signer: Too long: may not be more than 253 bytes"},
	} {
		require.Equal(t, want, faultsOf(signerName(field.NewPath("signer"), name)), name)
	}
}

func TestNamesOfAFewKinds(t *testing.T) {
	table := Builtin(Options{})
	row := func(group, resource string) *Resource {
		return table.Lookup(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
	}
	require.Equal(t, "10.96.0.7", row("networking.k8s.io", "ipaddresses").Strategy.GenerateName("10.96.0.7"))
	classes := row("resource.k8s.io", "deviceclasses").Strategy
	require.Empty(t, classes.ValidateName("Bad_", true), "the name made of it is judged")
	require.Equal(t, []string{"must be no more than 253 bytes"}, classes.ValidateName(strings.Repeat("x", 260), false))
	runtimes := row("node.k8s.io", "runtimeclasses")
	handler := decoded(t, table, runtimes.GroupVersionResource, `{"metadata":{"name":"r"},"handler":"`+strings.Repeat("x", 70)+`"}`)
	require.Equal(t, []string{"handler: Invalid value: must be no more than 63 bytes"}, faultsOf(runtimes.Strategy.Validate(t.Context(), handler)))
}
