package rbac_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver/rbac"
)

var (
	user  = rbac.User{Name: "jane", Groups: []string{"dev", "system:authenticated"}}
	robot = rbac.User{Name: "system:serviceaccount:a:robot", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:a"}}
)

func rule(verbs, groups, resources []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func clusterBinding(role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects}
}

func binding(namespace, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: subjects}
}

var (
	jane  = rbacv1.Subject{Kind: "User", Name: "jane"}
	devs  = rbacv1.Subject{Kind: "Group", Name: "dev"}
	aBot  = rbacv1.Subject{Kind: "ServiceAccount", Namespace: "a", Name: "robot"}
	words = func(s ...string) []string { return s }
)

func TestOneRule(t *testing.T) {
	for name, c := range map[string]struct {
		rule rbacv1.PolicyRule
		yes  []rbac.Request
		no   []rbac.Request
	}{
		"a resource is not its subresources, and of its group only": {
			rule(words("get", "list"), words("", "apps"), words("pods", "deployments/scale")),
			[]rbac.Request{{Verb: "get", Resource: "pods"}, {Verb: "list", Resource: "pods", Namespace: "any"}, {Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale"}},
			[]rbac.Request{{Verb: "watch", Resource: "pods"}, {Verb: "get", Resource: "pods", Subresource: "log"}, {Verb: "get", Group: "batch", Resource: "pods"}, {Verb: "get", Group: "apps", Resource: "deployments"}},
		},
		"stars": {
			rule(words("*"), words("*"), words("*/scale")),
			[]rbac.Request{{Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale"}},
			[]rbac.Request{{Verb: "patch", Group: "apps", Resource: "deployments"}, {Verb: "get", Path: "/metrics"}},
		},
		"every resource, but no path": {
			rule(words("*"), words("*"), words("*")),
			[]rbac.Request{{Verb: "get", Resource: "pods", Subresource: "exec"}, {Verb: "anything", Group: "x", Resource: "y"}},
			[]rbac.Request{{Verb: "get", Path: "/metrics"}},
		},
		"names: a list has none": {
			rule(words("get", "list", "create"), words(""), words("secrets"), "mine"),
			[]rbac.Request{{Verb: "get", Resource: "secrets", Name: "mine"}},
			[]rbac.Request{{Verb: "get", Resource: "secrets", Name: "yours"}, {Verb: "list", Resource: "secrets"}, {Verb: "create", Resource: "secrets"}},
		},
		"paths: a star at the end alone": {
			rbacv1.PolicyRule{Verbs: words("get"), NonResourceURLs: words("/logs/*", "/metrics", "/a*/b")},
			[]rbac.Request{{Verb: "get", Path: "/logs/x/y"}, {Verb: "get", Path: "/metrics"}, {Verb: "get", Path: "/a*/b"}},
			[]rbac.Request{{Verb: "get", Path: "/logs"}, {Verb: "get", Path: "/metrics/x"}, {Verb: "post", Path: "/metrics"}, {Verb: "get", Path: "/ax/b"}, {Verb: "get", Resource: "logs"}},
		},
	} {
		policy := rbac.Compile(rbac.Objects{ClusterRoles: []*rbacv1.ClusterRole{clusterRole("r", c.rule)}, ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{clusterBinding("r", jane)}})
		for _, request := range c.yes {
			_, ok := policy.Allow(user, request)
			require.True(t, ok, "%s: %+v", name, request)
			_, ok = policy.Allow(robot, request)
			require.False(t, ok, "%s, somebody else: %+v", name, request)
		}
		for _, request := range c.no {
			_, ok := policy.Allow(user, request)
			require.False(t, ok, "%s: %+v", name, request)
		}
	}
}

func TestWhereABindingReaches(t *testing.T) {
	reader := clusterRole("reader", rule(words("get"), words(""), words("pods")), rbacv1.PolicyRule{Verbs: words("get"), NonResourceURLs: words("/metrics")})
	policy := rbac.Compile(rbac.Objects{
		ClusterRoles: []*rbacv1.ClusterRole{reader},
		Roles:        []*rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "writer"}, Rules: []rbacv1.PolicyRule{rule(words("create"), words(""), words("pods"))}}},
		RoleBindings: []*rbacv1.RoleBinding{
			binding("a", "ClusterRole", "reader", devs, rbacv1.Subject{Kind: "ServiceAccount", Name: "robot"}),
			binding("a", "Role", "writer", aBot), binding("b", "Role", "writer", aBot), // b has no such role
		},
	})
	allowed := func(u rbac.User, r rbac.Request) (string, bool) { return policy.Allow(u, r) }
	reason, ok := allowed(user, rbac.Request{Verb: "get", Resource: "pods", Namespace: "a"})
	require.True(t, ok)
	require.Equal(t, `RBAC: allowed by RoleBinding "reader/a" of ClusterRole "reader" to Group "dev"`, reason)
	for _, elsewhere := range []rbac.Request{{Verb: "get", Resource: "pods", Namespace: "b"}, {Verb: "get", Resource: "pods"}, {Verb: "get", Path: "/metrics"}} {
		_, ok = allowed(user, elsewhere)
		require.False(t, ok, "%+v", elsewhere)
	}
	reason, ok = allowed(robot, rbac.Request{Verb: "create", Resource: "pods", Namespace: "a"})
	require.True(t, ok)
	require.Equal(t, `RBAC: allowed by RoleBinding "writer/a" of Role "writer" to ServiceAccount "robot/a"`, reason)
	_, ok = allowed(robot, rbac.Request{Verb: "get", Resource: "pods", Namespace: "a"})
	require.True(t, ok, "a service account without a namespace is one of the binding's")
	reason, ok = allowed(robot, rbac.Request{Verb: "create", Resource: "pods", Namespace: "b"})
	require.False(t, ok)
	require.Equal(t, `RBAC: role.rbac.authorization.k8s.io "writer" not found`, reason)
	require.Len(t, policy.RulesFor(user, "a"), 2)
	require.Empty(t, policy.RulesFor(user, "b"))
}

func TestMayGrant(t *testing.T) {
	policy := rbac.Compile(rbac.Objects{
		ClusterRoles:        []*rbacv1.ClusterRole{clusterRole("reader", rule(words("get", "list"), words(""), words("pods"))), clusterRole("all", rbac.Everything()...)},
		ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{clusterBinding("reader", jane), clusterBinding("all", rbacv1.Subject{Kind: "User", Name: "root"})},
	})
	require.NoError(t, policy.MayGrant(user, "a", []rbacv1.PolicyRule{rule(words("list"), words(""), words("pods"), "one")}))
	err := policy.MayGrant(user, "a", []rbacv1.PolicyRule{rule(words("get", "watch", "create"), words(""), words("pods", "secrets"))})
	require.ErrorIs(t, err, rbac.ErrEscalation)
	require.EqualError(t, err, `user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["pods"], Verbs:["create", "watch"]}
{APIGroups:[""], Resources:["secrets"], Verbs:["create", "get", "watch"]}`)
	require.ErrorIs(t, policy.MayAggregate(user), rbac.ErrEscalation)
	root := rbac.User{Name: "root"}
	require.NoError(t, policy.MayAggregate(root))
	require.NoError(t, policy.MayGrant(root, "", []rbacv1.PolicyRule{{Verbs: words("*"), NonResourceURLs: words("*")}}))
}

func TestDefaults(t *testing.T) {
	defaults := rbac.Defaults()
	require.Len(t, defaults.ClusterRoles, 76)
	require.Len(t, defaults.ClusterRoleBindings, 57)
	policy := rbac.Compile(defaults)
	for _, b := range defaults.ClusterRoleBindings {
		_, ok := policy.RulesOf(b.RoleRef, "")
		require.True(t, ok, b.Name)
	}
	for _, b := range defaults.RoleBindings {
		_, ok := policy.RulesOf(b.RoleRef, b.Namespace)
		require.True(t, ok, b.Name)
	}
	joining := rbac.Joining()
	whole := rbac.Compile(rbac.Objects{ClusterRoles: append(rbac.Defaults().ClusterRoles, joining.ClusterRoles...)})
	for _, b := range joining.ClusterRoleBindings {
		_, ok := whole.RulesOf(b.RoleRef, "")
		require.True(t, ok, b.Name)
	}
	anybody := rbac.User{Name: "x", Groups: words("system:authenticated")}
	_, ok := policy.Allow(anybody, rbac.Request{Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"})
	require.True(t, ok)
	_, ok = policy.Allow(anybody, rbac.Request{Verb: "get", Path: "/openapi/v3/apis/apps/v1"})
	require.True(t, ok)
	_, ok = policy.Allow(anybody, rbac.Request{Verb: "list", Resource: "pods"})
	require.False(t, ok)
	_, ok = policy.Allow(rbac.User{Name: "system:kube-scheduler"}, rbac.Request{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: "a"})
	require.True(t, ok)

	// What was taken from a default comes back, what was added stays.
	view := rule(words("get", "list"), words(""), words("pods"))
	mine := rule(words("get"), words(""), words("nodes"))
	require.Equal(t, []rbacv1.PolicyRule{mine, rule(words("get"), words(""), words("pods")), rule(words("list"), words(""), words("pods"))}, rbac.FitRules([]rbacv1.PolicyRule{mine}, []rbacv1.PolicyRule{view}))
	require.Equal(t, []rbacv1.PolicyRule{view}, rbac.FitRules([]rbacv1.PolicyRule{view}, []rbacv1.PolicyRule{view}))
	require.Equal(t, []rbacv1.Subject{devs, jane}, rbac.FitSubjects([]rbacv1.Subject{devs}, []rbacv1.Subject{jane, devs}))
}
