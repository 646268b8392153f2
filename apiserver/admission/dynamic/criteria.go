package dynamic

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission"
)

// rule is one of a policy, or, without names of objects, of a webhook.
type rule = admissionv1.NamedRuleWithOperations

// Criteria say which requests a webhook, a policy or a binding is for. The zero value is for all.
type Criteria struct {
	rules, excluded []rule
	equivalent      bool            // rules for one version of a resource hold for all
	namespaces      labels.Selector // nil selects all
	objects         labels.Selector
}

// ForWebhook compiles the criteria of a webhook. The error is a selector that is none.
func ForWebhook(rules []admissionv1.RuleWithOperations, policy *admissionv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) (*Criteria, error) {
	match := admissionv1.MatchResources{MatchPolicy: policy, NamespaceSelector: namespaces, ObjectSelector: objects}
	for _, one := range rules {
		match.ResourceRules = append(match.ResourceRules, rule{RuleWithOperations: one})
	}
	c, err := ForPolicy(&match)
	if err == nil && len(rules) == 0 {
		c.rules = []rule{{}} // one that nothing matches: a webhook without rules is never called
	}
	return c, err
}

// ForPolicy compiles the criteria of a policy or a binding; nil is for all, and so are no rules.
func ForPolicy(match *admissionv1.MatchResources) (*Criteria, error) {
	if match == nil {
		return &Criteria{}, nil
	}
	namespaces, err := selector(match.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("namespaceSelector: %w", err)
	}
	objects, err := selector(match.ObjectSelector)
	if err != nil {
		return nil, fmt.Errorf("objectSelector: %w", err)
	}
	return &Criteria{
		rules: match.ResourceRules, excluded: match.ExcludeResourceRules,
		equivalent: match.MatchPolicy != nil && *match.MatchPolicy == admissionv1.Equivalent,
		namespaces: namespaces, objects: objects,
	}, nil
}

// selector is nil if it selects everything.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return nil, nil
	}
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || out.Empty() {
		return nil, err
	}
	return out, nil
}

// matchesAny says whether one of the rules is for the request, were it for that resource.
func matchesAny(rules []rule, r *admission.Request, resource schema.GroupVersionResource) bool {
	for i := range rules {
		if matches(&rules[i], r, resource) {
			return true
		}
	}
	return false
}

func matches(m *rule, r *admission.Request, resource schema.GroupVersionResource) bool {
	return hasOperation(m.Operations, r.Operation) &&
		has(m.APIGroups, resource.Group) && has(m.APIVersions, resource.Version) &&
		hasResource(m.Resources, resource.Resource, r.Subresource) &&
		inScope(m.Scope, r) &&
		(len(m.ResourceNames) == 0 || slices.Contains(m.ResourceNames, r.Name))
}

func has(list []string, item string) bool {
	for _, one := range list {
		if one == "*" || one == item {
			return true
		}
	}
	return false
}

func hasOperation(list []admissionv1.OperationType, operation admission.Operation) bool {
	for _, one := range list {
		if one == admissionv1.OperationAll || string(one) == string(operation) {
			return true
		}
	}
	return false
}

// hasResource: "pods" is the resource itself, "pods/*" the resource and all below it, "*" all resources without what is below.
func hasResource(list []string, resource, subresource string) bool {
	for _, one := range list {
		name, sub, _ := strings.Cut(one, "/")
		if (name == "*" || name == resource) && (sub == "*" || sub == subresource) {
			return true
		}
	}
	return false
}

// inScope: namespaces are cluster-scoped, though a request on one says which namespace it is in.
func inScope(scope *admissionv1.ScopeType, r *admission.Request) bool {
	if scope == nil || *scope == admissionv1.AllScopes {
		return true
	}
	namespaced := r.Namespace != "" && !onNamespace(r)
	return namespaced == (*scope == admissionv1.NamespacedScope)
}

// onNamespace says whether a request is about a namespace itself.
func onNamespace(r *admission.Request) bool {
	return r.Resource.Group == "" && r.Resource.Resource == "namespaces"
}
