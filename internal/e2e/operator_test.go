package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

// sites is how each of the tests below calls kubectl about sites in a namespace of its own.
type sites struct {
	t  *testing.T
	n  *node
	k  kubectlArgv
	ns string
}

func (s sites) ok(args ...string) string {
	s.t.Helper()
	return s.k.ok(s.t, s.n, append([]string{"-n", s.ns}, args...)...)
}

func (s sites) fails(args ...string) string {
	s.t.Helper()
	return s.k.fails(s.t, s.n, append([]string{"-n", s.ns}, args...)...)
}

// TestOperator runs examples/operator as docs/operators.md does: a definition with two versions that the operator
// converts, rules, scale, status, events, owned Deployments and a finalizer.
func TestOperator(t *testing.T) {
	n := shared(t)
	operators := installSites(t, n)
	first := operators.start()
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		s := sites{t, n, k, namespace(t, n)}
		// The older version is converted by the operator, which may not be up yet.
		eventually(t, time.Minute, func() string {
			if r := k.run(n, "", "-n", s.ns, "apply", "-f", filepath.Join(operatorDir, "sites.yaml")); r.err != nil {
				return r.stderr
			}
			return ""
		})
		s.ok("wait", "--for=condition=Ready", "site", "--all", "--timeout=60s")
		s.showsSites()
		s.judgesSites()
		s.scalesSites()
		s.editsSites()
		s.deletesSites()
	})

	// One of two operators leads; when it stops the other one goes on.
	s := sites{t, n, embeddedKubectl(), namespace(t, n)}
	second := operators.start()
	second.out.waitFor(t, "Attempting to acquire leader lease", time.Minute)
	first.stop()
	second.out.waitFor(t, "Successfully acquired lease", time.Minute)
	s.k.okInput(t, n, site("late", ""), "-n", s.ns, "apply", "-f", "-")
	s.ok("wait", "--for=condition=Ready", "site/late", "--timeout=60s")
	second.stop()

	// Without an operator the stored version is there; the other one cannot be made of it, which is said.
	s.ok("patch", "site", "late", "--type=merge", "-p", `{"spec":{"replicas":2}}`)
	require.Contains(t, s.fails("get", "sites.v1beta1.web.example.com", "late"), "conversion webhook for web.example.com/")
	operators.start()
	s.ok("wait", "--for=jsonpath={.status.readyReplicas}=2", "site/late", "--timeout=60s")
	require.Contains(t, s.ok("get", "sites.v1beta1.web.example.com", "late", "-o", "yaml"), "size: 2")

	// With the definition everything goes: the operator takes its finalizers away, the garbage collector takes the rest.
	s.ok("delete", "crd", "sites.web.example.com", "--timeout=60s")
	require.Contains(t, s.fails("get", "--raw", "/apis/web.example.com/v1"), "the server could not find the requested resource")
	eventually(t, time.Minute, func() string { return s.ok("get", "deployments", "-o", "name") })
}

// site is the manifest of one.
func site(name, spec string) string {
	return "apiVersion: web.example.com/v1\nkind: Site\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}

// showsSites: columns, versions, discovery and documentation.
func (s sites) showsSites() {
	s.t.Helper()
	require.Regexp(s.t, `NAME +PLAN +WANTED +READY +AGE\nkon-tiki +free +2 +2 +\S+\nra +free +1 +1 +\S+\n`, s.ok("get", "sites"))
	require.Regexp(s.t, `kon-tiki +free +2 +2 +\S+ +kontiki.local/hello\n`, s.ok("get", "si", "-o", "wide"))
	require.Contains(s.t, s.ok("get", "all"), "site.web.example.com/kon-tiki")
	older := s.k.run(s.n, "", "-n", s.ns, "get", "sites.v1beta1.web.example.com")
	require.NoError(s.t, older.err)
	require.Regexp(s.t, `NAME +SIZE\nkon-tiki +2\nra +1\n`, older.stdout)
	require.Contains(s.t, older.stderr, "Warning: web.example.com/v1beta1 Site is old")
	require.Contains(s.t, s.ok("explain", "site.spec.plan"), "Plan says how far the site may grow.")
	require.Contains(s.t, s.ok("explain", "site.spec.size", "--api-version=web.example.com/v1beta1"), "Size is how many servers answer.")
	require.Regexp(s.t, `sites +si +web.example.com/v1 +true +Site`, s.ok("api-resources", "--api-group=web.example.com"))
	require.Contains(s.t, s.ok("events", "--for=site/kon-tiki"), "2 of 2 servers answer")
	require.Contains(s.t, s.ok("describe", "site", "kon-tiki"), "ServersAnswer")
	address := s.ok("get", "pods", "-l", "web.example.com/site=kon-tiki", "-o", "jsonpath={.items[0].status.podIP}")
	require.Contains(s.t, httpGet(s.t, "http://"+address+":8080/"), "Hello from the raft!")
	require.Contains(s.t, s.k.ok(s.t, s.n, "-n", "site-system", "get", "configmap", "directory", "-o", "yaml"), s.ns+".kon-tiki: Hello from the raft!")
}

// judgesSites: rules with messages of their own, transitions, validation by the client and by the server.
func (s sites) judgesSites() {
	s.t.Helper()
	patch := func(spec string) []string {
		return []string{"patch", "site", "kon-tiki", "--type=merge", "-p", `{"spec":{` + spec + `}}`}
	}
	require.Contains(s.t, s.fails(patch(`"replicas":4`)...), "spec.replicas: Forbidden: a free site has 3 replicas at most")
	require.Contains(s.t, s.fails(patch(`"plan":"huge"`)...), `spec.plan: Unsupported value: "huge"`)
	require.Contains(s.t, s.fails("scale", "site/kon-tiki", "--replicas=4"), "a free site has 3 replicas at most")
	s.ok(patch(`"plan":"paid"`)...)
	require.Contains(s.t, s.fails(patch(`"plan":"free"`)...), "what has been paid for stays so")
	unknown := s.k.run(s.n, site("x", "sails: 3"), "-n", s.ns, "apply", "-f", "-")
	require.Error(s.t, unknown.err)
	require.Contains(s.t, unknown.stderr, `unknown field "spec.sails"`)
	require.Equal(s.t, "site.web.example.com/kon-tiki\n", s.ok("get", "sites", "--field-selector=spec.plan=paid", "-o", "name"))
}

// scalesSites: by kubectl, by the scale subresource, and as an autoscaler does.
func (s sites) scalesSites() {
	s.t.Helper()
	watched := start(s.t, s.k, s.n, "-n", s.ns, "get", "site", "kon-tiki", "-w", "-o", "wide")
	watched.waitFor(s.t, `kon-tiki +paid +2 +2 `, time.Minute)
	s.ok("scale", "site/kon-tiki", "--replicas=3")
	s.ok("wait", "--for=jsonpath={.status.readyReplicas}=3", "site/kon-tiki", "--timeout=60s")
	watched.waitFor(s.t, `kon-tiki +paid +3 +3 +\S+ +kontiki.local/hello`, time.Minute)
	require.Equal(s.t, "3", s.ok("get", "deployment", "kon-tiki", "-o", "jsonpath={.spec.replicas}"))
	require.Equal(s.t, "web.example.com/site=kon-tiki", s.ok("get", "site", "kon-tiki", "--subresource=scale", "-o", "jsonpath={.status.selector}"))
	s.ok("patch", "site", "kon-tiki", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":1}}`)
	require.Equal(s.t, "1", s.ok("get", "site", "kon-tiki", "-o", "jsonpath={.spec.replicas}"))

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config := s.n.restConfig(s.t)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(s.t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client))
	require.NoError(s.t, err)
	resource := schema.GroupResource{Group: "web.example.com", Resource: "sites"}
	found, err := scales.Scales(s.ns).Get(ctx, resource, "kon-tiki", metav1.GetOptions{})
	require.NoError(s.t, err)
	found.Spec.Replicas = 2
	_, err = scales.Scales(s.ns).Update(ctx, resource, found, metav1.UpdateOptions{})
	require.NoError(s.t, err)
	patched, err := scales.Scales(s.ns).Patch(ctx, resource.WithVersion("v1"), "kon-tiki", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
	require.EqualValues(s.t, 3, patched.Spec.Replicas)
	s.ok("wait", "--for=jsonpath={.status.replicas}=3", "site/kon-tiki", "--timeout=60s")
}

// editsSites: an editor, server-side apply beside others, and the status.
func (s sites) editsSites() {
	s.t.Helper()
	s.ok("patch", "site", "ra", "--type=merge", "-p", `{"spec":{"greeting":"edit-me"}}`)
	s.ok("edit", "site", "ra")
	require.Equal(s.t, "edited", s.ok("get", "site", "ra", "-o", "jsonpath={.spec.greeting}"))
	s.k.okInput(s.t, s.n, site("ra", "greeting: applied"), "-n", s.ns, "apply", "--server-side", "--field-manager=me", "--force-conflicts", "-f", "-")
	other := s.k.run(s.n, site("ra", "greeting: other"), "-n", s.ns, "apply", "--server-side", "--field-manager=other", "-f", "-")
	require.Error(s.t, other.err)
	require.Contains(s.t, other.stderr, `conflict with "me": .spec.greeting`)
	require.Contains(s.t, s.ok("get", "site", "ra", "--subresource=status", "-o", "yaml"), "type: Ready")
	generation := s.ok("get", "site", "ra", "-o", "jsonpath={.metadata.generation}")
	s.ok("patch", "site", "ra", "--subresource=status", "--type=merge", "-p", `{"status":{"selector":"edit-me"},"spec":{"greeting":"not by status"}}`)
	s.ok("edit", "site", "ra", "--subresource=status")
	require.Equal(s.t, "applied", s.ok("get", "site", "ra", "-o", "jsonpath={.spec.greeting}"))
	require.Equal(s.t, generation, s.ok("get", "site", "ra", "-o", "jsonpath={.metadata.generation}"))
	// By and by the operator puts the selector right: whatever happens to the Deployment brings it here.
	s.ok("label", "deployment", "ra", "look=here")
	eventually(s.t, time.Minute, func() string {
		if selector := s.ok("get", "site", "ra", "-o", "jsonpath={.status.selector}"); selector != "web.example.com/site=ra" {
			return "the selector is " + selector
		}
		return ""
	})
}

// deletesSites: with what they own, and without.
func (s sites) deletesSites() {
	s.t.Helper()
	s.ok("delete", "site", "kon-tiki", "--cascade=foreground", "--timeout=60s")
	require.NotContains(s.t, s.ok("get", "deployments", "-o", "name"), "kon-tiki", "foreground: what it owns goes first")
	s.ok("delete", "site", "ra", "--cascade=orphan", "--timeout=60s")
	require.Contains(s.t, s.ok("get", "deployments", "-o", "name"), "ra")
	require.Empty(s.t, s.ok("get", "deployment", "ra", "-o", "jsonpath={.metadata.ownerReferences}"))
	lines := s.k.ok(s.t, s.n, "-n", "site-system", "get", "configmap", "directory", "-o", "jsonpath={.data}")
	require.False(s.t, strings.Contains(lines, s.ns+"."), lines)
	s.ok("delete", "deployment", "ra")
}
