package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kontiki/apiserver/tokens"
)

// Objects are all roles and bindings of a cluster, as they are stored. They are not changed.
type Objects struct {
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
}

// Policy answers questions about one state of the roles and bindings. It is safe for concurrent use.
type Policy struct {
	clusterRoles map[string][]rbacv1.PolicyRule
	roles        map[inNamespace][]rbacv1.PolicyRule
	everywhere   map[subject][]grant
	within       map[string]map[subject][]grant // by namespace
}

type inNamespace struct{ namespace, name string }

// subject is a user or a group. A service account is the user that its tokens name.
type subject struct {
	group bool
	name  string
}

// grant is one binding as one of its subjects has it.
type grant struct {
	binding string // as it is told in reasons
	role    rbacv1.RoleRef
	rules   []rbacv1.PolicyRule
	missing bool // the role does not exist
}

// Compile makes the policy that the objects say.
func Compile(objects Objects) *Policy {
	p := &Policy{
		clusterRoles: map[string][]rbacv1.PolicyRule{},
		roles:        map[inNamespace][]rbacv1.PolicyRule{},
		everywhere:   map[subject][]grant{},
		within:       map[string]map[subject][]grant{},
	}
	for _, r := range objects.ClusterRoles {
		p.clusterRoles[r.Name] = r.Rules
	}
	for _, r := range objects.Roles {
		p.roles[inNamespace{r.Namespace, r.Name}] = r.Rules
	}
	for _, b := range objects.ClusterRoleBindings {
		p.bind(p.everywhere, fmt.Sprintf("ClusterRoleBinding %q", b.Name), "", b.RoleRef, b.Subjects)
	}
	for _, b := range objects.RoleBindings {
		if p.within[b.Namespace] == nil {
			p.within[b.Namespace] = map[subject][]grant{}
		}
		p.bind(p.within[b.Namespace], fmt.Sprintf("RoleBinding %q", b.Name+"/"+b.Namespace), b.Namespace, b.RoleRef, b.Subjects)
	}
	return p
}

func (p *Policy) bind(to map[subject][]grant, binding, namespace string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
	rules, ok := p.RulesOf(role, namespace)
	for _, s := range subjects {
		who := subject{name: s.Name}
		switch s.Kind {
		case rbacv1.GroupKind:
			who.group = true
		case rbacv1.ServiceAccountKind:
			if s.Namespace == "" {
				s.Namespace = namespace
			}
			who.name = tokens.Subject(s.Namespace, s.Name)
		}
		to[who] = append(to[who], grant{binding: binding, role: role, rules: rules, missing: !ok})
	}
}

// RulesOf returns the rules of the role that a binding in namespace refers to, and whether the role exists.
func (p *Policy) RulesOf(role rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	if role.Kind == "Role" {
		rules, ok := p.roles[inNamespace{namespace, role.Name}]
		return rules, ok
	}
	rules, ok := p.clusterRoles[role.Name]
	return rules, ok
}

// User is who asks.
type User struct {
	Name   string
	Groups []string
}

// Allow decides. The reason of a yes names the binding, the role and the subject that it is owed to; that of a no
// names roles that the user's bindings ask for and that do not exist, if there are any.
func (p *Policy) Allow(user User, r Request) (reason string, ok bool) {
	var lacking []string
	p.grantsOf(user, r.Namespace, func(who subject, g *grant) bool {
		if g.missing {
			lacking = append(lacking, fmt.Sprintf("%s %q not found", strings.ToLower(g.role.Kind)+"."+rbacv1.GroupName, g.role.Name))
		}
		for i := range g.rules {
			if allows(&g.rules[i], &r) {
				reason, ok = fmt.Sprintf("RBAC: allowed by %s of %s %q to %s", g.binding, g.role.Kind, g.role.Name, who), true
				return false
			}
		}
		return true
	})
	if !ok && len(lacking) > 0 {
		reason = "RBAC: " + strings.Join(lacking, ", ")
	}
	return reason, ok
}

// RoleAllows says whether a cluster role would allow a request to whoever has it everywhere.
func (p *Policy) RoleAllows(clusterRole string, r Request) bool {
	return slices.ContainsFunc(p.clusterRoles[clusterRole], func(rule rbacv1.PolicyRule) bool { return allows(&rule, &r) })
}

// RulesFor are all rules that a user has in a namespace, or, with no namespace, everywhere.
func (p *Policy) RulesFor(user User, namespace string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	p.grantsOf(user, namespace, func(_ subject, g *grant) bool {
		out = append(out, g.rules...)
		return true
	})
	return out
}

// grantsOf yields what the user is granted everywhere, then in the namespace, until yield returns false.
func (p *Policy) grantsOf(user User, namespace string, yield func(subject, *grant) bool) {
	for _, level := range []map[subject][]grant{p.everywhere, p.within[namespace]} {
		for i := -1; i < len(user.Groups); i++ {
			who := subject{name: user.Name}
			if i >= 0 {
				who = subject{group: true, name: user.Groups[i]}
			}
			for j := range level[who] {
				if !yield(who, &level[who][j]) {
					return
				}
			}
		}
	}
}

func (s subject) String() string {
	if s.group {
		return fmt.Sprintf("Group %q", s.name)
	}
	if namespace, name, ok := tokens.Account(s.name); ok {
		return fmt.Sprintf("ServiceAccount %q", name+"/"+namespace)
	}
	return fmt.Sprintf("User %q", s.name)
}
