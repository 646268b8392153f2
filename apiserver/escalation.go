package apiserver

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/rbac"
	"kontiki/apiserver/registry"
)

// mayGrant keeps users from handing out by roles and bindings what they do not have themselves. Who may "escalate" a
// role may write anything into it; who may "bind" a role may give it to anybody. old is nil when obj is created.
func (s *Server) mayGrant(ctx context.Context, t *target, obj, old runtime.Object) error {
	if t.resource.Group != rbacv1.GroupName {
		return nil
	}
	user := userOf(registry.AskerOf(ctx))
	if mayAll(user) || old != nil && sameGrant(obj, old) {
		return nil
	}
	switch o := obj.(type) {
	case *rbacv1.Role:
		return s.mayWriteRole(ctx, user, t, o, o.Rules, nil)
	case *rbacv1.ClusterRole:
		return s.mayWriteRole(ctx, user, t, o, o.Rules, o.AggregationRule)
	case *rbacv1.RoleBinding:
		return s.mayBind(ctx, user, t, o, o.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return s.mayBind(ctx, user, t, o, o.RoleRef)
	}
	return nil
}

// sameGrant says whether an update touches nothing but what the garbage collector works with.
func sameGrant(obj, old runtime.Object) bool {
	obj, old = obj.DeepCopyObject(), old.DeepCopyObject()
	for _, o := range []runtime.Object{obj, old} {
		m := accessor(o)
		m.SetOwnerReferences(nil)
		m.SetFinalizers(nil)
		m.SetManagedFields(nil)
		m.SetResourceVersion("")
	}
	return equality.Semantic.DeepEqual(obj, old)
}

func (s *Server) mayWriteRole(ctx context.Context, user User, t *target, role metav1.Object, rules []rbacv1.PolicyRule, aggregation *rbacv1.AggregationRule) error {
	_, escalates := s.authorize(ctx, user, rbac.Request{
		Verb: "escalate", Group: rbacv1.GroupName, Resource: t.resource.Resource, Namespace: role.GetNamespace(), Name: role.GetName(),
	})
	if escalates {
		return nil
	}
	policy := s.policy.Load()
	err := policy.MayGrant(user.rbac(), role.GetNamespace(), rules)
	if err == nil && aggregation != nil {
		err = policy.MayAggregate(user.rbac())
	}
	if err != nil {
		return apierrors.NewForbidden(t.groupResource(), role.GetName(), err)
	}
	return nil
}

func (s *Server) mayBind(ctx context.Context, user User, t *target, binding metav1.Object, role rbacv1.RoleRef) error {
	resource := schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	if role.Kind == "Role" {
		resource.Resource = "roles"
	}
	_, binds := s.authorize(ctx, user, rbac.Request{
		Verb: "bind", Group: resource.Group, Resource: resource.Resource, Namespace: binding.GetNamespace(), Name: role.Name,
	})
	if binds {
		return nil
	}
	policy := s.policy.Load()
	rules, ok := policy.RulesOf(role, binding.GetNamespace())
	if !ok {
		return apierrors.NewNotFound(resource, role.Name)
	}
	if err := policy.MayGrant(user.rbac(), binding.GetNamespace(), rules); err != nil {
		return apierrors.NewForbidden(t.groupResource(), binding.GetName(), err)
	}
	return nil
}
