package apiserver

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/rbac"
)

// The roles and bindings of the cluster are objects like others. Every server follows them and compiles its own policy.

var (
	clusterRoles        = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	clusterRoleBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	roles               = rbacv1.SchemeGroupVersion.WithResource("roles")
	roleBindings        = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

var policyObjects = []schema.GroupVersionResource{clusterRoles, clusterRoleBindings, roles, roleBindings}

// loadPolicy compiles the policy that the objects of the cluster say, and takes it into use.
func (s *Server) loadPolicy(ctx context.Context) (revision int64, err error) {
	var objects rbac.Objects
	if objects.ClusterRoles, revision, err = listAll[*rbacv1.ClusterRole](ctx, s.storeOf(s.table.Lookup(clusterRoles))); err != nil {
		return 0, err
	}
	if objects.ClusterRoleBindings, _, err = listAll[*rbacv1.ClusterRoleBinding](ctx, s.storeOf(s.table.Lookup(clusterRoleBindings))); err != nil {
		return 0, err
	}
	if objects.Roles, _, err = listAll[*rbacv1.Role](ctx, s.storeOf(s.table.Lookup(roles))); err != nil {
		return 0, err
	}
	if objects.RoleBindings, _, err = listAll[*rbacv1.RoleBinding](ctx, s.storeOf(s.table.Lookup(roleBindings))); err != nil {
		return 0, err
	}
	s.policy.Store(rbac.Compile(objects))
	return revision, nil
}

// defaultPolicy are the default roles and bindings. Of those that are there, what the defaults have is put back unless their
// annotation says to leave them; what somebody added stays.
func defaultPolicy() []wanted {
	return slices.Concat(wantedPolicy(rbac.Defaults()), wantedPolicy(rbac.Joining()))
}

func wantedPolicy(defaults rbac.Objects) (out []wanted) {
	for _, r := range defaults.ClusterRoles {
		out = append(out, wanted{obj: r, fit: func(present runtime.Object) {
			if p := present.(*rbacv1.ClusterRole); rbac.KeptUp(p) && p.AggregationRule == nil {
				p.Rules = rbac.FitRules(p.Rules, r.Rules)
			}
		}})
	}
	for _, r := range defaults.Roles {
		out = append(out, wanted{obj: r, fit: func(present runtime.Object) {
			if p := present.(*rbacv1.Role); rbac.KeptUp(p) {
				p.Rules = rbac.FitRules(p.Rules, r.Rules)
			}
		}})
	}
	for _, b := range defaults.ClusterRoleBindings {
		out = append(out, wanted{obj: b, fit: func(present runtime.Object) {
			if p := present.(*rbacv1.ClusterRoleBinding); rbac.KeptUp(p) {
				p.Subjects = rbac.FitSubjects(p.Subjects, b.Subjects)
			}
		}})
	}
	for _, b := range defaults.RoleBindings {
		out = append(out, wanted{obj: b, fit: func(present runtime.Object) {
			if p := present.(*rbacv1.RoleBinding); rbac.KeptUp(p) {
				p.Subjects = rbac.FitSubjects(p.Subjects, b.Subjects)
			}
		}})
	}
	return out
}
