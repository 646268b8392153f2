package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rbacRows store roles and bindings. What they allow is apiserver/rbac's matter.
func rbacRows() []*Resource {
	rows := []*Resource{clusterRoleBindings(), clusterRoles(), roleBindings(), roles()}
	for _, r := range rows {
		r.Strategy.NoGeneration = true
		r.Strategy.AllowCreateOnUpdate = true
		r.Strategy.ValidateName = pathSegment
	}
	return rows
}

func roles() *Resource {
	r := newRow[rbacv1.Role, rbacv1.RoleList](rbacv1.SchemeGroupVersion, "roles", "Role")
	r.Strategy.Validate = validator(func(o *rbacv1.Role) field.ErrorList { return validateRules(o.Rules, true) })
	r.Columns = columns([]string{"Name", "Created At:date"})
	r.Row = cells(func(o *rbacv1.Role, _ time.Time) []any { return createdAt(&o.ObjectMeta) })
	return r
}

func clusterRoles() *Resource {
	r := newRow[rbacv1.ClusterRole, rbacv1.ClusterRoleList](rbacv1.SchemeGroupVersion, "clusterroles", "ClusterRole")
	r.Namespaced = false
	r.Strategy.Validate = validator(func(o *rbacv1.ClusterRole) field.ErrorList { return validateRules(o.Rules, false) })
	r.Columns = columns([]string{"Name", "Created At:date"})
	r.Row = cells(func(o *rbacv1.ClusterRole, _ time.Time) []any { return createdAt(&o.ObjectMeta) })
	return r
}

func createdAt(meta *metav1.ObjectMeta) []any {
	return []any{meta.Name, meta.CreationTimestamp.UTC().Format(time.RFC3339)}
}

// validateRules: a rule is about resources or, in a cluster role, about paths.
func validateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var faults field.ErrorList
	for i, rule := range rules {
		at := field.NewPath("rules").Index(i)
		if len(rule.Verbs) == 0 {
			faults = append(faults, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
		if len(rule.NonResourceURLs) > 0 {
			if namespaced {
				faults = append(faults, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
				faults = append(faults, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(rule.APIGroups) == 0 {
			faults = append(faults, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(rule.Resources) == 0 {
			faults = append(faults, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return faults
}

func roleBindings() *Resource {
	r := newRow[rbacv1.RoleBinding, rbacv1.RoleBindingList](rbacv1.SchemeGroupVersion, "rolebindings", "RoleBinding")
	r.Strategy = Strategy{
		Default: defaulter(func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }),
		Validate: validator(func(b *rbacv1.RoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, b.Subjects, true)
		}),
		ValidateUpdate: updateValidator(func(b, old *rbacv1.RoleBinding) field.ErrorList {
			return roleStays(b.RoleRef, old.RoleRef)
		}),
	}
	r.Columns = bindingColumns
	r.Row = cells(func(b *rbacv1.RoleBinding, now time.Time) []any {
		return bindingRow(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
	})
	return r
}

func clusterRoleBindings() *Resource {
	r := newRow[rbacv1.ClusterRoleBinding, rbacv1.ClusterRoleBindingList](rbacv1.SchemeGroupVersion, "clusterrolebindings", "ClusterRoleBinding")
	r.Namespaced = false
	r.Strategy = Strategy{
		Default: defaulter(func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }),
		Validate: validator(func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
			return validateBinding(b.RoleRef, b.Subjects, false)
		}),
		ValidateUpdate: updateValidator(func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
			return roleStays(b.RoleRef, old.RoleRef)
		}),
	}
	r.Columns = bindingColumns
	r.Row = cells(func(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
		return bindingRow(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
	})
	return r
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	setDefault(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbacv1.UserKind || kind == rbacv1.GroupKind {
			setDefault(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func validateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	at := field.NewPath("roleRef")
	faults := supported(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)
	kinds := []string{"ClusterRole"}
	if namespaced {
		kinds = []string{"Role", "ClusterRole"}
	}
	faults = append(faults, supported(at.Child("kind"), ref.Kind, kinds...)...)
	if ref.Name == "" {
		faults = append(faults, field.Required(at.Child("name"), ""))
	} else {
		faults = append(faults, invalid(at.Child("name"), ref.Name, pathSegment(ref.Name, false))...)
	}
	for i, s := range subjects {
		faults = append(faults, roleSubject(field.NewPath("subjects").Index(i), s, namespaced)...)
	}
	return faults
}

// roleSubject is whom a role is given to. A service account without a namespace is of the binding's.
func roleSubject(path *field.Path, s rbacv1.Subject, namespaced bool) field.ErrorList {
	faults := required(path.Child("name"), s.Name)
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			faults = append(faults, invalid(path.Child("name"), s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))...)
		}
		if s.APIGroup != "" {
			faults = append(faults, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{""}))
		}
		if !namespaced {
			faults = append(faults, required(path.Child("namespace"), s.Namespace)...)
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		faults = append(faults, supported(path.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)...)
	default:
		faults = append(faults, field.NotSupported(path.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	return faults
}

func roleStays(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref != old {
		return field.ErrorList{field.Invalid(field.NewPath("roleRef"), shown(ref), "field is immutable")}
	}
	return nil
}

var bindingColumns = columns([]string{"Name", "Role", "Age"}, "Users", "Groups", "ServiceAccounts")

func bindingRow(meta *metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject, now time.Time) []any {
	of := func(kind string) string {
		var out []string
		for _, s := range subjects {
			switch {
			case s.Kind != kind:
			case s.Namespace != "":
				out = append(out, s.Namespace+"/"+s.Name)
			default:
				out = append(out, s.Name)
			}
		}
		return strings.Join(slices.Clip(out), ", ")
	}
	return []any{meta.Name, fmt.Sprintf("%s/%s", ref.Kind, ref.Name), age(meta, now), of(rbacv1.UserKind), of(rbacv1.GroupKind), of(rbacv1.ServiceAccountKind)}
}
