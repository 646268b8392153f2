package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/rand"
)

// raftDefinition defines rafts in a group, whose status is a subresource.
func raftDefinition(group string) string {
	return strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rafts.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: rafts, singular: raft, kind: Raft, categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        description: Raft floats.
        properties:
          spec: {type: object, properties: {logs: {type: integer, default: 9, description: of balsa}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, "GROUP", group)
}

func raft(group, name string) string {
	return "apiVersion: " + group + "/v1\nkind: Raft\nmetadata: {name: " + name + "}\nspec: {}\n"
}

// TestDefinitionAndObject: a definition can be used the moment that it has been made, in one file with its objects too;
// then everything that people do with kubectl, without an operator.
func TestDefinitionAndObject(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns, group := namespace(t, n), "rafts-"+rand.String(5)+".example.com"
		t.Cleanup(func() { k.run(n, "", "delete", "crd", "rafts."+group, "--ignore-not-found") })
		both := raftDefinition(group) + "---\n" + raft(group, "a")
		// kubectl create makes one object after the other, and looks a kind up when it comes to it.
		k.okInput(t, n, both, "-n", ns, "create", "-f", "-")
		// kubectl apply looks all kinds up first, so that of a new group it applies the definition alone, and then both.
		group2 := "more-" + group
		t.Cleanup(func() { k.run(n, "", "delete", "crd", "rafts."+group2, "--ignore-not-found") })
		both = raftDefinition(group2) + "---\n" + raft(group2, "a")
		r := k.run(n, both, "-n", ns, "apply", "-f", "-")
		require.Error(t, r.err)
		require.Contains(t, r.stderr, "ensure CRDs are installed first")
		require.Contains(t, k.okInput(t, n, both, "-n", ns, "apply", "-f", "-"), "raft."+group2+"/a created")
		require.Contains(t, k.okInput(t, n, both, "-n", ns, "apply", "--server-side", "--force-conflicts", "-f", "-"), "raft."+group2+"/a serverside-applied")

		full := "rafts." + group
		require.Regexp(t, `NAME +AGE\na +\S+\n`, k.ok(t, n, "-n", ns, "get", full))
		require.Contains(t, k.ok(t, n, "explain", "rafts.spec.logs", "--api-version="+group+"/v1"), "of balsa")
		k.ok(t, n, "wait", "--for=condition=Established", "crd/"+full, "--timeout=60s")
		k.ok(t, n, "-n", ns, "patch", full, "a", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Afloat","status":"True"}],"knots":3}}`)
		k.ok(t, n, "-n", ns, "wait", "--for=condition=Afloat", "raft."+group+"/a", "--timeout=60s")
		k.ok(t, n, "-n", ns, "wait", "--for=jsonpath={.status.knots}=3", "raft."+group+"/a", "--timeout=60s")
		k.ok(t, n, "-n", ns, "label", full, "a", "sail=yes")
		k.ok(t, n, "-n", ns, "annotate", full, "a", "note=edit-me")
		k.ok(t, n, "-n", ns, "edit", full, "a")
		require.Equal(t, "edited 9", k.ok(t, n, "-n", ns, "get", full, "a", "-o", "jsonpath={.metadata.annotations.note} {.spec.logs}"))
		yaml := k.ok(t, n, "-n", ns, "get", full, "a", "-o", "yaml")
		k.okInput(t, n, strings.Replace(yaml, "logs: 9", "logs: 12", 1), "-n", ns, "replace", "-f", "-")
		require.Equal(t, "12", k.ok(t, n, "-n", ns, "get", full, "-l", "sail", "-o", "jsonpath={.items[0].spec.logs}"))
		k.ok(t, n, "-n", ns, "patch", full, "a", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
		k.ok(t, n, "-n", ns, "delete", full, "a", "--wait=false")
		require.NotEmpty(t, k.ok(t, n, "-n", ns, "get", full, "a", "-o", "jsonpath={.metadata.deletionTimestamp}"))
		k.ok(t, n, "-n", ns, "patch", full, "a", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		k.ok(t, n, "-n", ns, "wait", "--for=delete", "raft."+group+"/a", "--timeout=60s")

		k.okInput(t, n, raft(group, "b"), "-n", ns, "apply", "-f", "-")
		k.ok(t, n, "delete", "crd", full, "--cascade=foreground", "--timeout=60s")
		require.Contains(t, k.fails(t, n, "get", "--raw", "/apis/"+group), "could not find")
	})
}
