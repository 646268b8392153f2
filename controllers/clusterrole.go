package controllers

import (
	"cmp"
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
)

// clusterRole writes into each ClusterRole with an aggregation rule the rules of the roles that it selects, as admin,
// edit and view have them. A request names such a role.
type clusterRole struct {
	client kubernetes.Interface
	roles  rbaclisters.ClusterRoleLister
}

func addClusterRole(m *manager) error {
	client, err := m.client("clusterrole-aggregation")
	if err != nil {
		return err
	}
	roles := m.shared.Rbac().V1().ClusterRoles()
	lister := roles.Lister()
	c := m.add("clusterrole-aggregation", 1, &clusterRole{client: client, roles: lister})
	watch(c, roles.Informer(), func(*rbacv1.ClusterRole) []Request { return aggregating(lister) })
	return nil
}

// aggregating are all roles that take their rules from others: any change of a role can concern each of them.
func aggregating(lister rbaclisters.ClusterRoleLister) []Request {
	roles, err := lister.List(labels.Everything())
	if err != nil {
		return nil // a lister over a cache has no errors
	}
	var out []Request
	for _, role := range roles {
		if role.AggregationRule != nil {
			out = append(out, named(role.Name))
		}
	}
	return out
}

func (c *clusterRole) Reconcile(ctx context.Context, req Request) (Result, error) {
	all, err := c.roles.List(labels.Everything())
	if err != nil {
		return Result{}, err
	}
	i := slices.IndexFunc(all, func(r *rbacv1.ClusterRole) bool { return r.Name == req.Name })
	if i < 0 || all[i].AggregationRule == nil {
		return Result{}, nil
	}
	rules, err := aggregate(all[i], all)
	if err != nil || equality.Semantic.DeepEqual(rules, all[i].Rules) {
		return Result{}, err
	}
	next := all[i].DeepCopy()
	next.Rules = rules
	_, err = c.client.RbacV1().ClusterRoles().Update(ctx, next, metav1.UpdateOptions{})
	return Result{}, err
}

// aggregate collects the rules of all other roles that one of the role's selectors selects, in the order of their names,
// each rule once.
func aggregate(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
	var out []rbacv1.PolicyRule
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, part := range all {
			if part.Name == role.Name || !selector.Matches(labels.Set(part.Labels)) {
				continue
			}
			for _, rule := range part.Rules {
				if !slices.ContainsFunc(out, func(o rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(o, rule) }) {
					out = append(out, rule)
				}
			}
		}
	}
	return out, nil
}
