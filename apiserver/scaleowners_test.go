package apiserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whoever changes a scale takes spec.replicas of its parent over, and applying to either of the two knows the owners of both.
func TestOwnersOfScale(t *testing.T) {
	_, c := start(t)
	apply := func(path, manager, query, body string) answer {
		return c.patch(path+"?fieldManager="+manager+query, applyPatch, body)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"} {
		t.Run(kind, func(t *testing.T) {
			version, root := "apps/v1", "/apis/apps/v1"
			selector := `{"matchLabels":{"app":"x"}}`
			if kind == "ReplicationController" {
				version, root, selector = "v1", "/api/v1", `{"app":"x"}`
			}
			path := root + "/namespaces/default/" + strings.ToLower(kind) + "s/x"
			parent := func(replicas string) string {
				return `{"apiVersion":"` + version + `","kind":"` + kind + `","metadata":{"name":"x"},"spec":{` + replicas + `"selector":` + selector +
					`,"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
			}
			scale := func(replicas string) string {
				return `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"x","namespace":"default"},"spec":{"replicas":` + replicas + `}}`
			}
			requireOwner := func(replicas int64, manager, operation, subresource string) {
				t.Helper()
				obj := c.get(path).ok().object()
				found, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
				require.Equal(t, replicas, found)
				require.Equal(t, []string{manager + " " + operation + " " + subresource + " " + version}, ownersOfReplicas(obj))
			}
			apply(path, "one", "", parent(`"replicas":1,`)).ok()
			requireOwner(1, "one", "Apply", "")

			c.patch(path+"/scale?fieldManager=two", mergePatch, `{"spec":{"replicas":2}}`).ok()
			requireOwner(2, "two", "Update", "scale")
			c.put(path+"/scale?fieldManager=three", scale("3")).ok()
			requireOwner(3, "three", "Update", "scale")

			apply(path, "one", "", parent(`"replicas":1,`)).fails(409, metav1.StatusReasonConflict, `conflict with "three" with subresource "scale"`)
			apply(path, "one", "&force=true", parent(`"replicas":1,`)).ok()
			requireOwner(1, "one", "Apply", "")

			refused := apply(path+"/scale", "four", "", scale("4"))
			refused.fails(409, metav1.StatusReasonConflict, `conflict with "one"`)
			require.Equal(t, ".spec.replicas", refused.status().Details.Causes[0].Field)
			view := apply(path+"/scale", "four", "&force=true", scale("4")).ok().object()
			require.Equal(t, "Scale", view.GetKind())
			require.Empty(t, view.GetManagedFields(), "a scale shows none, as in Kubernetes")
			requireOwner(4, "four", "Apply", "scale")

			was := c.get(path).ok().resourceVersion()
			apply(path+"/scale", "four", "", scale("4")).ok()
			require.Equal(t, was, c.get(path).ok().resourceVersion(), "the same again costs no revision")
			apply(path+"/scale", "five", "", scale("4")).ok() // agrees with four
			require.Len(t, ownersOfReplicas(c.get(path).ok().object()), 2)

			apply(path, "one", "", parent("")).ok() // leaves it to the others
			found, _, _ := unstructured.NestedInt64(c.get(path).object().Object, "spec", "replicas")
			require.EqualValues(t, 4, found)
		})
	}
}

// What does not fit a Scale is refused by apply, too.
func TestApplyToScaleRefuses(t *testing.T) {
	_, c := start(t)
	c.post(deployments, deployment("d", `"replicas":0`)).ok()
	const path = deployments + "/d/scale"
	apply := func(query, body string) answer { return c.patch(path+query, applyPatch, body) }
	const ok = `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":1}}`
	apply("", ok).fails(422, metav1.StatusReasonInvalid, "fieldManager")
	apply("?fieldManager=m", deployment("d", `"replicas":1`)).fails(400, metav1.StatusReasonBadRequest, "Deployment")
	apply("?fieldManager=m", strings.Replace(ok, "replicas", "replica", 1)).fails(400, metav1.StatusReasonBadRequest, "replica")
	apply("?fieldManager=m", strings.Replace(ok, "1}", `"1"}`, 1)).fails(400, metav1.StatusReasonBadRequest, "replicas")
	apply("?fieldManager=m&force=true", strings.Replace(ok, "1}", "-1}", 1)).fails(422, metav1.StatusReasonInvalid, "spec.replicas")
	c.patch(deployments+"/none/scale?fieldManager=m", applyPatch, ok).fails(404, metav1.StatusReasonNotFound, "")
}

// ownersOfReplicas are the entries of managedFields that have spec.replicas.
func ownersOfReplicas(obj *unstructured.Unstructured) (out []string) {
	for _, e := range obj.GetManagedFields() {
		if strings.Contains(string(e.FieldsV1.Raw), `"f:replicas"`) && strings.Contains(string(e.FieldsV1.Raw), `"f:spec"`) {
			out = append(out, e.Manager+" "+string(e.Operation)+" "+e.Subresource+" "+e.APIVersion)
		}
	}
	return out
}
