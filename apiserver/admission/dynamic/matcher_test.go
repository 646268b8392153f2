package dynamic

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission"
)

// world is a cluster with one namespace, in which events have two versions. It counts look-ups.
type world struct {
	Versions
	admission.Objects
	lookups int
}

func (w *world) Get(_ context.Context, resource schema.GroupVersionResource, _, name string) (runtime.Object, error) {
	w.lookups++
	if name != "here" {
		return nil, apierrors.NewNotFound(resource.GroupResource(), name)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "a"}}}, nil
}

func (w *world) Equivalents(resource schema.GroupVersionResource, _ string) []Match {
	if resource.Resource != "events" {
		return nil
	}
	other := schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}
	return []Match{{other.WithResource("events"), other.WithKind("Event")}}
}

func request(operation admission.Operation, resource, subresource, namespace string, labels map[string]string) *admission.Request {
	r := &admission.Request{
		Operation: operation, Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Subresource: subresource,
		Kind: schema.GroupVersionKind{Version: "v1", Kind: resource}, Namespace: namespace, Name: "n",
	}
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}} // anything with labels
	if r.Object = obj; operation == admission.Delete {
		r.Object, r.Old = nil, obj
	}
	return r
}

func ruleFor(resources ...string) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: resources},
	}
}

func TestMatch(t *testing.T) {
	scoped := func(scope admissionv1.ScopeType, resources ...string) admissionv1.RuleWithOperations {
		r := ruleFor(resources...)
		r.Scope = &scope
		return r
	}
	teamA := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	equivalent := admissionv1.Equivalent
	ofEvents := ruleFor("events")
	ofEvents.APIGroups = []string{"events.k8s.io"}
	for name, test := range map[string]struct {
		rule                admissionv1.RuleWithOperations
		policy              *admissionv1.MatchPolicyType
		namespaces, objects *metav1.LabelSelector
		request             *admission.Request
		want                bool
		lookups             int
	}{
		"resource":                {rule: ruleFor("pods"), request: request("CREATE", "pods", "", "here", nil), want: true},
		"operation":               {rule: ruleFor("pods"), request: request("UPDATE", "pods", "", "here", nil)},
		"subresource":             {rule: ruleFor("pods"), request: request("CREATE", "pods", "binding", "here", nil)},
		"named subresource":       {rule: ruleFor("pods/binding"), request: request("CREATE", "pods", "binding", "here", nil), want: true},
		"all below":               {rule: ruleFor("pods/*"), request: request("CREATE", "pods", "binding", "here", nil), want: true},
		"all below, itself":       {rule: ruleFor("pods/*"), request: request("CREATE", "pods", "", "here", nil), want: true},
		"of all":                  {rule: ruleFor("*/binding"), request: request("CREATE", "pods", "binding", "here", nil), want: true},
		"star has no subresource": {rule: ruleFor("*"), request: request("CREATE", "pods", "binding", "here", nil)},
		"everything":              {rule: ruleFor("*/*"), request: request("CREATE", "pods", "binding", "here", nil), want: true},
		"namespaced":              {rule: scoped(admissionv1.NamespacedScope, "*"), request: request("CREATE", "pods", "", "here", nil), want: true},
		"namespaced, node":        {rule: scoped(admissionv1.NamespacedScope, "*"), request: request("CREATE", "nodes", "", "", nil)},
		"cluster, namespace":      {rule: scoped(admissionv1.ClusterScope, "*"), request: request("CREATE", "namespaces", "", "n", nil), want: true},
		"exact":                   {rule: ofEvents, request: request("CREATE", "events", "", "here", nil)},
		"equivalent":              {rule: ofEvents, policy: &equivalent, request: request("CREATE", "events", "", "here", nil), want: true},
		"team":                    {rule: ruleFor("pods"), namespaces: teamA, request: request("CREATE", "pods", "", "here", nil), want: true, lookups: 1},
		"team, other resource":    {rule: ruleFor("pods"), namespaces: teamA, request: request("CREATE", "secrets", "", "here", nil)},
		"team, cluster-scoped":    {rule: ruleFor("nodes"), namespaces: teamA, request: request("CREATE", "nodes", "", "", nil), want: true},
		"team, new namespace":     {rule: ruleFor("namespaces"), namespaces: teamA, request: request("CREATE", "namespaces", "", "n", map[string]string{"team": "a"}), want: true},
		"team, other namespace":   {rule: ruleFor("namespaces"), namespaces: teamA, request: request("CREATE", "namespaces", "", "n", nil)},
		"object":                  {rule: ruleFor("pods"), objects: teamA, request: request("CREATE", "pods", "", "here", map[string]string{"team": "a"}), want: true},
		"other object":            {rule: ruleFor("pods"), objects: teamA, request: request("CREATE", "pods", "", "here", nil)},
		"object that goes":        {rule: ruleFor("pods"), objects: teamA, request: request("DELETE", "pods", "", "here", map[string]string{"team": "a"}), want: true},
	} {
		w := &world{}
		c, err := ForWebhook([]admissionv1.RuleWithOperations{test.rule}, test.policy, test.namespaces, test.objects)
		require.NoError(t, err, name)
		match, ok, err := (&Matcher{Objects: w, Versions: w}).Match(t.Context(), test.request, c)
		require.NoError(t, err, name)
		require.Equal(t, test.want, ok, name)
		require.Equal(t, test.lookups, w.lookups, "%s: look-ups", name)
		if name == "equivalent" {
			require.Equal(t, "events.k8s.io", match.Kind.Group)
		}
	}
}

// A namespace that is not there is told, not passed over.
func TestMatchWithoutNamespace(t *testing.T) {
	w := &world{}
	c, err := ForWebhook([]admissionv1.RuleWithOperations{ruleFor("pods")}, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, nil)
	require.NoError(t, err)
	_, ok, err := (&Matcher{Objects: w, Versions: w}).Match(t.Context(), request("CREATE", "pods", "", "gone", nil), c)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.False(t, ok)
}

// Names and exceptions, which policies alone have; and a webhook without rules, which is for nothing.
func TestMatchNamesAndExceptions(t *testing.T) {
	w := &world{}
	m := &Matcher{Objects: w, Versions: w}
	named := admissionv1.NamedRuleWithOperations{RuleWithOperations: ruleFor("pods"), ResourceNames: []string{"n"}}
	match := func(policy *admissionv1.MatchResources, r *admission.Request) bool {
		c, err := ForPolicy(policy)
		require.NoError(t, err)
		_, ok, err := m.Match(t.Context(), r, c)
		require.NoError(t, err)
		return ok
	}
	pod := request("CREATE", "pods", "", "here", nil)
	other := request("CREATE", "pods", "", "here", nil)
	other.Name = "m"
	require.True(t, match(nil, pod))
	require.True(t, match(&admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{named}}, pod))
	require.False(t, match(&admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{named}}, other))
	require.False(t, match(&admissionv1.MatchResources{ExcludeResourceRules: []admissionv1.NamedRuleWithOperations{named}}, pod))
	require.True(t, match(&admissionv1.MatchResources{ExcludeResourceRules: []admissionv1.NamedRuleWithOperations{named}}, other))
	none, err := ForWebhook(nil, nil, nil, nil)
	require.NoError(t, err)
	_, ok, err := m.Match(t.Context(), pod, none)
	require.NoError(t, err)
	require.False(t, ok)
}
