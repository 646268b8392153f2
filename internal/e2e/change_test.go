package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestScaleAndRollout changes a Deployment in the ways an operator does.
func TestScaleAndRollout(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		k.okInput(t, n, deployment("roll", 1), "-n", ns, "apply", "-f", "-")
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/roll", "--timeout=60s")
		k.ok(t, n, "-n", ns, "scale", "deployment/roll", "--replicas=3")
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/roll", "--timeout=60s")
		require.Equal(t, "3", k.ok(t, n, "-n", ns, "get", "deployment", "roll", "-o", "jsonpath={.status.readyReplicas}"))

		k.ok(t, n, "-n", ns, "set", "image", "deployment/roll", "hello=kontiki.local/hello:other")
		eventually(t, time.Minute, func() string {
			reasons := k.ok(t, n, "-n", ns, "get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}")
			if !strings.Contains(reasons, "ImagePull") {
				return "no pod says that the image cannot be pulled: " + reasons
			}
			return ""
		})
		require.NotEqual(t, "0", k.ok(t, n, "-n", ns, "get", "deployment", "roll", "-o", "jsonpath={.status.availableReplicas}"),
			"a rollout to a broken image leaves the old pods serving")
		require.Contains(t, k.ok(t, n, "-n", ns, "rollout", "history", "deployment/roll"), "2")

		k.ok(t, n, "-n", ns, "rollout", "undo", "deployment/roll")
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/roll", "--timeout=60s")
		require.Equal(t, "kontiki.local/hello:latest",
			k.ok(t, n, "-n", ns, "get", "deployment", "roll", "-o", "jsonpath={.spec.template.spec.containers[0].image}"))

		k.ok(t, n, "-n", ns, "rollout", "restart", "deployment/roll")
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/roll", "--timeout=60s")
	})
}

// TestPatchLabelReplace exercises the write paths that kubectl has for one object.
func TestPatchLabelReplace(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		get := func(path string) string {
			return k.ok(t, n, "-n", ns, "get", "configmap", "c", "-o", "jsonpath={"+path+"}")
		}
		k.ok(t, n, "-n", ns, "create", "configmap", "c", "--from-literal=a=1")
		k.ok(t, n, "-n", ns, "patch", "configmap", "c", "--type=merge", "-p", `{"data":{"b":"2"}}`)
		k.ok(t, n, "-n", ns, "patch", "configmap", "c", "--type=json", "-p", `[{"op":"replace","path":"/data/a","value":"3"}]`)
		k.ok(t, n, "-n", ns, "patch", "configmap", "c", "--type=strategic", "-p", `{"data":{"b":null}}`)
		require.Equal(t, `{"a":"3"}`, get(".data"))

		k.ok(t, n, "-n", ns, "label", "configmap", "c", "colour=red")
		require.Equal(t, "red", get(".metadata.labels.colour"))
		require.Contains(t, k.ok(t, n, "-n", ns, "get", "configmap", "-l", "colour in (red,blue)", "-o", "name"), "configmap/c")
		require.Empty(t, k.ok(t, n, "-n", ns, "get", "configmap", "-l", "colour=green", "-o", "name"))
		k.ok(t, n, "-n", ns, "annotate", "configmap", "c", "note=edit-me")
		k.ok(t, n, "-n", ns, "edit", "configmap", "c")
		require.Equal(t, "edited", get(".metadata.annotations.note"))

		yaml := k.ok(t, n, "-n", ns, "get", "configmap", "c", "-o", "yaml")
		k.okInput(t, n, strings.Replace(yaml, `a: "3"`, `a: "4"`, 1), "-n", ns, "replace", "-f", "-")
		require.Equal(t, "4", get(".data.a"))
		r := k.run(n, strings.Replace(yaml, `a: "3"`, `a: "5"`, 1), "-n", ns, "replace", "-f", "-")
		require.Error(t, r.err)
		require.Contains(t, r.stderr, "the object has been modified", "a stale resourceVersion is refused")
	})
}

// TestServerSideApply shares an object between two managers.
func TestServerSideApply(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		one := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {a: one}\n"
		two := strings.Replace(one, "one", "two", 1)
		k.okInput(t, n, one, "-n", ns, "apply", "--server-side", "--field-manager=m1", "-f", "-")
		r := k.run(n, two, "-n", ns, "apply", "--server-side", "--field-manager=m2", "-f", "-")
		require.Error(t, r.err)
		require.Contains(t, r.stderr, `conflict with "m1": .data.a`)
		k.okInput(t, n, two, "-n", ns, "apply", "--server-side", "--field-manager=m2", "--force-conflicts", "-f", "-")
		require.Equal(t, "two", k.ok(t, n, "-n", ns, "get", "configmap", "s", "-o", "jsonpath={.data.a}"))
	})
}

// TestDiffAndWait uses the two commands that scripts lean on.
func TestDiffAndWait(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		k.okInput(t, n, deployment("d", 1), "-n", ns, "apply", "-f", "-")
		require.Empty(t, k.okInput(t, n, deployment("d", 1), "-n", ns, "diff", "-f", "-"))
		r := k.run(n, deployment("d", 2), "-n", ns, "diff", "-f", "-")
		require.ErrorContains(t, r.err, "exit status 1")
		require.Regexp(t, `(?m)^\+ +replicas: 2`, r.stdout)

		k.ok(t, n, "-n", ns, "wait", "--for=condition=Available", "deployment/d", "--timeout=60s")
		pod := k.ok(t, n, "-n", ns, "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
		k.ok(t, n, "-n", ns, "delete", "deployment", "d", "--wait=false")
		k.ok(t, n, "-n", ns, "wait", "--for=delete", "pod/"+pod, "--timeout=60s")
	})
}

// TestDeleteCascades deletes an owner in each of the three modes.
func TestDeleteCascades(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		count := func(kind, app string) int {
			return len(strings.Fields(k.ok(t, n, "-n", ns, "get", kind, "-l", "app="+app, "-o", "name")))
		}
		for _, mode := range []string{"background", "foreground", "orphan"} {
			k.okInput(t, n, deployment(mode, 1), "-n", ns, "apply", "-f", "-")
			k.ok(t, n, "-n", ns, "rollout", "status", "deployment/"+mode, "--timeout=60s")
			k.ok(t, n, "-n", ns, "delete", "deployment", mode, "--cascade="+mode)
			if mode == "foreground" {
				require.Zero(t, count("rs", mode), "foreground: dependents go first")
			}
		}
		eventually(t, time.Minute, func() string {
			if count("pods", "background") != 0 || count("rs", "background") != 0 {
				return "dependents of a deleted deployment are still there"
			}
			return ""
		})
		require.Equal(t, 1, count("rs", "orphan"))
		require.Equal(t, 1, count("pods", "orphan"))
		require.Empty(t, k.ok(t, n, "-n", ns, "get", "rs", "-l", "app=orphan", "-o", "jsonpath={.items[*].metadata.ownerReferences}"))
	})
}

// TestExplainAndDiscovery reads what the server says of itself.
func TestExplainAndDiscovery(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		text := k.ok(t, n, "explain", "deployment.spec")
		require.Contains(t, text, "progressDeadlineSeconds")
		require.Contains(t, text, "The maximum time in seconds for a deployment to make progress")
		require.Contains(t, k.ok(t, n, "explain", "pods", "--recursive"), "terminationGracePeriodSeconds")
		resources := k.ok(t, n, "api-resources")
		for _, row := range []string{`deployments +deploy +apps/v1 +true +Deployment`, `pods +po +v1 +true +Pod`, `nodes +no +v1 +false +Node`} {
			require.Regexp(t, row, resources)
		}
		require.Contains(t, k.ok(t, n, "version"), "Server Version: v1.37")
		require.Contains(t, k.fails(t, n, "get", "nonsense"), `the server doesn't have a resource type "nonsense"`)
		require.Contains(t, k.fails(t, n, "get", "pod", "nobody"), `pods "nobody" not found`)
		invalid := k.run(n, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndatum: {}\n", "apply", "-f", "-")
		require.Error(t, invalid.err)
		require.Contains(t, invalid.stderr, `unknown field "datum"`)
	})
}

// TestReconcile brings roles to what a file says, as who installs things does: rules are added, and removed only when asked.
func TestReconcile(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		role := func(verbs string) string {
			return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader","namespace":"` + ns + `"},` +
				`"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":[` + verbs + `]}]}`
		}
		verbs := func() string {
			return k.ok(t, n, "-n", ns, "get", "role", "reader", "-o", "jsonpath={.rules[*].verbs}")
		}
		k.okInput(t, n, role(`"get"`), "auth", "reconcile", "-f", "-")
		k.okInput(t, n, role(`"list"`), "auth", "reconcile", "-f", "-")
		require.Equal(t, `["get"] ["list"]`, verbs())
		k.okInput(t, n, role(`"list"`), "auth", "reconcile", "--remove-extra-permissions", "-f", "-")
		require.Equal(t, `["list"]`, verbs())
	})
}

// TestQuestions: what people ask about the API and about themselves.
func TestQuestions(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		require.Regexp(t, `(?m)^apps/v1$`, k.ok(t, n, "api-versions"))
		require.Regexp(t, `Groups +\[system:masters system:authenticated\]`, k.ok(t, n, "auth", "whoami"))
		require.Regexp(t, `(?m)^\*\.\* +\[\] +\[\] +\[\*\]$`, k.ok(t, n, "auth", "can-i", "--list"))
		require.Equal(t, "yes\n", k.ok(t, n, "auth", "can-i", "create", "pods", "--subresource=exec"))
		robot := k.run(n, "", "auth", "can-i", "delete", "nodes", "--as=system:serviceaccount:default:default")
		require.Error(t, robot.err)
		require.Equal(t, "no\n", robot.stdout)
		require.Contains(t, k.ok(t, n, "auth", "can-i", "--list", "--as=system:serviceaccount:default:default"), "selfsubjectreviews.authentication.k8s.io")
		proxy := start(t, k, n, "proxy", "--port=0")
		port := proxy.waitFor(t, `Starting to serve on 127\.0\.0\.1:(\d+)`, time.Minute)
		require.Contains(t, httpGet(t, "http://127.0.0.1:"+port+"/api/v1/namespaces/default"), `"kind":"Namespace"`)
	})
}
