package rbac

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"
)

//go:embed defaults.yaml
var defaultsYAML []byte

// controllersUser is who Kontiki's controllers are: one process, one certificate, and the roles of each of them.
const controllersUser = "system:kube-controller-manager"

type defaultRole struct {
	Name, Namespace string
	Labels          map[string]string
	Aggregates      string
	Rules           []rbacv1.PolicyRule
}

type defaultBinding struct {
	Name, Namespace string
	Kind, Role      string // of the role; empty means the binding's own kind and name
	Subjects        []rbacv1.Subject
}

type defaultsFile struct {
	ClusterRoles, Roles               []defaultRole
	ClusterRoleBindings, RoleBindings []defaultBinding
}

var readDefaults = sync.OnceValue(func() (file defaultsFile) {
	if err := yaml.UnmarshalStrict(defaultsYAML, &file); err != nil {
		panic(fmt.Sprintf("rbac/defaults.yaml: %v", err)) // it is part of the program, and a test reads it
	}
	return file
})

// Defaults returns the roles and bindings of every cluster, new objects each time that share their rules.
func Defaults() Objects { return readDefaults().objects() }

func (file defaultsFile) objects() (out Objects) {
	for _, r := range file.ClusterRoles {
		role := &rbacv1.ClusterRole{ObjectMeta: defaultMeta(r.Name, "", r.Labels), Rules: r.Rules}
		if r.Aggregates != "" {
			role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{r.Aggregates: "true"}}}}
		}
		out.ClusterRoles = append(out.ClusterRoles, role)
	}
	for _, r := range file.Roles {
		out.Roles = append(out.Roles, &rbacv1.Role{ObjectMeta: defaultMeta(r.Name, r.Namespace, r.Labels), Rules: r.Rules})
	}
	for _, b := range file.ClusterRoleBindings {
		out.ClusterRoleBindings = append(out.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{
			ObjectMeta: defaultMeta(b.Name, "", nil), RoleRef: b.roleRef("ClusterRole"), Subjects: b.subjects(),
		})
	}
	for _, b := range file.RoleBindings {
		out.RoleBindings = append(out.RoleBindings, &rbacv1.RoleBinding{
			ObjectMeta: defaultMeta(b.Name, b.Namespace, nil), RoleRef: b.roleRef("Role"), Subjects: b.subjects(),
		})
	}
	return out
}

// keptUpAnnotation says, with the value "true", that a default object follows the defaults of the release.
const keptUpAnnotation = "rbac.authorization.kubernetes.io/autoupdate"

func defaultMeta(name, namespace string, labels map[string]string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Name: name, Namespace: namespace,
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{keptUpAnnotation: "true"},
	}
	maps.Copy(out.Labels, labels)
	return out
}

func (b *defaultBinding) roleRef(kind string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: cmp.Or(b.Kind, kind), Name: cmp.Or(b.Role, b.Name)}
}

func (b *defaultBinding) subjects() []rbacv1.Subject {
	out := slices.Clone(b.Subjects)
	for i := range out {
		if out[i].Kind != rbacv1.ServiceAccountKind {
			out[i].APIGroup = rbacv1.GroupName
		}
	}
	if strings.HasPrefix(b.Name, "system:controller:") {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: controllersUser})
	}
	return out
}

// FitRules returns the rules that a default role should have, given those it has: what somebody added stays, what the
// default has beyond it comes in addition. Rules of a role that aggregates are left alone.
func FitRules(present, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, lacking := validation.Covers(present, wanted)
	return append(slices.Clip(present), lacking...)
}

// FitSubjects does the same with the subjects of a default binding.
func FitSubjects(present, wanted []rbacv1.Subject) []rbacv1.Subject {
	out := slices.Clip(present)
	for _, s := range wanted {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// KeptUp says whether an object follows the defaults of the release: nobody has said otherwise in its annotations.
func KeptUp(obj metav1.Object) bool { return obj.GetAnnotations()[keptUpAnnotation] == "true" }
