package policy

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission/dynamic"
)

// paramsOf are the parameters of a policy through a binding, for a request in a namespace. A policy that has none, or whose
// binding names none, is evaluated once, without.
func (p *Policies) paramsOf(ctx context.Context, c *common, ref *admissionv1.ParamRef, namespace string) ([]runtime.Object, error) {
	if c.params == nil || ref == nil {
		return []runtime.Object{nil}, nil
	}
	resource, namespaced, _ := p.config.Params(*c.params) // usable has seen that there is one
	switch {
	case !namespaced && ref.Namespace != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !namespaced:
		namespace = ""
	case ref.Namespace != "":
		namespace = ref.Namespace
	case namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	}
	params, err := p.findParams(ctx, resource, namespace, ref)
	if err != nil {
		return nil, err
	}
	if len(params) == 0 && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admissionv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	for i := range params {
		params[i] = dynamic.Named(params[i], *c.params)
	}
	return params, nil
}

// findParams are those that a reference names or selects; none is no error.
func (p *Policies) findParams(ctx context.Context, resource schema.GroupVersionResource, namespace string, ref *admissionv1.ParamRef) ([]runtime.Object, error) {
	objects := p.config.Matcher.Objects
	if ref.Name != "" {
		param, err := objects.Get(ctx, resource, namespace, ref.Name)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return []runtime.Object{param}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
	if err != nil {
		return nil, err
	}
	all, err := objects.List(ctx, resource, namespace)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for _, param := range all {
		if m, err := meta.Accessor(param); err == nil && selector.Matches(labels.Set(m.GetLabels())) {
			out = append(out, param)
		}
	}
	return out, nil
}
