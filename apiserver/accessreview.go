package apiserver

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	operator "k8s.io/apimachinery/pkg/selection"

	"kontiki/apiserver/rbac"
)

// review answers a SubjectAccessReview. A selector that cannot be read, or a part of one, is left out: so the question is about more
// than was meant, never about less.
func (s *Server) review(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	user := User{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		user.Extra[key] = values
	}
	action, faults := reviewedAction(spec)
	decision, reason := s.decide(ctx, user, action)
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == allowed, Denied: decision == denied, Reason: reason, EvaluationError: strings.Join(faults, "; "),
	}
}

func reviewedAction(spec *authorizationv1.SubjectAccessReviewSpec) (action rbac.Request, faults []string) {
	a := spec.ResourceAttributes
	if a == nil {
		return rbac.Request{Verb: spec.NonResourceAttributes.Verb, Path: spec.NonResourceAttributes.Path}, nil
	}
	action = rbac.Request{
		Verb: a.Verb, Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
	}
	ignored := func(which string, left int) {
		if left > 0 {
			which += " partially"
		}
		faults = append(faults, "spec.resourceAttributes."+which+" ignored due to parse error")
	}
	var err error
	if a.FieldSelector != nil {
		if action.Fields, err = reviewedFields(a.FieldSelector); err != nil {
			ignored("fieldSelector", len(action.Fields))
		}
	}
	if a.LabelSelector != nil {
		if action.Labels, err = reviewedLabels(a.LabelSelector); err != nil {
			ignored("labelSelector", len(action.Labels))
		}
	}
	return action, faults
}

func reviewedFields(a *authorizationv1.FieldSelectorAttributes) (out fields.Requirements, err error) {
	if a.RawSelector != "" {
		return readFields(a.RawSelector)
	}
	operators := map[metav1.FieldSelectorOperator]operator.Operator{
		metav1.FieldSelectorOpIn: operator.Equals, metav1.FieldSelectorOpNotIn: operator.NotEquals, // as parsed selectors have them
	}
	for _, r := range a.Requirements {
		op, known := operators[r.Operator]
		if !known || len(r.Values) != 1 {
			err = fmt.Errorf("field selectors are = and != one value")
			continue
		}
		out = append(out, fields.Requirement{Field: r.Key, Operator: op, Value: r.Values[0]})
	}
	return out, err
}

func reviewedLabels(a *authorizationv1.LabelSelectorAttributes) (out labels.Requirements, err error) {
	if a.RawSelector != "" {
		return readLabels(a.RawSelector)
	}
	operators := map[metav1.LabelSelectorOperator]operator.Operator{
		metav1.LabelSelectorOpIn: operator.In, metav1.LabelSelectorOpNotIn: operator.NotIn,
		metav1.LabelSelectorOpExists: operator.Exists, metav1.LabelSelectorOpDoesNotExist: operator.DoesNotExist,
	}
	for _, r := range a.Requirements {
		op, known := operators[r.Operator]
		requirement, fault := labels.NewRequirement(r.Key, op, r.Values)
		if !known || fault != nil {
			err = fmt.Errorf("%q is no label selector", r.Operator)
			continue
		}
		out = append(out, *requirement)
	}
	return out, err
}

func readFields(text string) (fields.Requirements, error) {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	return selector.Requirements(), nil
}

func readLabels(text string) (labels.Requirements, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, err
	}
	out, _ := selector.Requirements()
	return out, nil
}

// reviewOf is the question whether a user may do something, as it is put to webhooks.
func reviewOf(user User, action rbac.Request) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: user.Name, UID: user.UID, Groups: user.Groups}
	if len(user.Extra) > 0 {
		spec.Extra = map[string]authorizationv1.ExtraValue{}
		for key, values := range user.Extra {
			spec.Extra[key] = values
		}
	}
	if action.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: action.Verb, Path: action.Path}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: action.Verb, Group: action.Group, Version: action.Version, Resource: action.Resource, Subresource: action.Subresource,
		Namespace: action.Namespace, Name: action.Name,
	}
	if len(action.Fields) > 0 {
		spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: fieldRequirements(action.Fields)}
	}
	if len(action.Labels) > 0 {
		spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: labelRequirements(action.Labels)}
	}
	return spec
}

func fieldRequirements(from fields.Requirements) (out []metav1.FieldSelectorRequirement) {
	for _, r := range from {
		op := metav1.FieldSelectorOpIn
		if r.Operator == operator.NotEquals {
			op = metav1.FieldSelectorOpNotIn
		}
		out = append(out, metav1.FieldSelectorRequirement{Key: r.Field, Operator: op, Values: []string{r.Value}})
	}
	return out
}

// labelRequirements leaves out the comparisons < and >, which a review cannot name.
func labelRequirements(from labels.Requirements) (out []metav1.LabelSelectorRequirement) {
	operators := map[operator.Operator]metav1.LabelSelectorOperator{
		operator.Equals: metav1.LabelSelectorOpIn, operator.DoubleEquals: metav1.LabelSelectorOpIn, operator.In: metav1.LabelSelectorOpIn,
		operator.NotEquals: metav1.LabelSelectorOpNotIn, operator.NotIn: metav1.LabelSelectorOpNotIn,
		operator.Exists: metav1.LabelSelectorOpExists, operator.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	}
	for _, r := range from {
		if op, ok := operators[r.Operator()]; ok {
			out = append(out, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: op, Values: r.ValuesUnsorted()})
		}
	}
	return out
}
