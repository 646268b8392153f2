package policy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// Mutator is the plugin MutatingAdmissionPolicy.
func (p *Policies) Mutator() admission.Mutator { return mutator{p} }

type mutator struct{ p *Policies }

// asked tells the evaluations of policies apart, over both rounds of admission.
type asked struct{ policy, binding, namespace, param string }

// Mutate implements admission.Mutator: policies are evaluated one after the other, each on what those before it have made.
func (m mutator) Mutate(ctx context.Context, r *admission.Request) error {
	if r.Operation == admission.Delete || dynamic.Exempt(r) {
		return nil
	}
	now, err := m.p.current.Get(ctx)
	if err != nil || len(now.mutating) == 0 {
		return err
	}
	met := invocations(ctx, m.p, r, now.mutating, func(p *mutating) *common { return &p.common })
	if len(met) == 0 {
		return nil
	}
	namespace, err := m.p.config.Matcher.Namespace(ctx, r)
	if err != nil {
		return err
	}
	state := dynamic.ReinvocationOf[asked](r, MutatingPlugin)
	state.Begin(r)
	views := dynamic.NewViews(r, m.p.config.Matcher.Versions)
	var faults []fault
	for _, one := range met {
		err := m.evaluate(ctx, r, one, views, namespace, state)
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			return status
		}
		if err != nil && !one.policy.ignore {
			faults = append(faults, faultOf(one, err))
		}
	}
	state.End(r)
	if len(faults) > 0 {
		return byMutation(r, faults)
	}
	return nil
}

func faultOf(one invocation[*mutating], err error) fault {
	f := fault{policy: one.policy.name, err: err, reason: metav1.StatusReasonInvalid}
	if one.binding != nil {
		f.binding = one.binding.name
	}
	if one.err != nil {
		f.reason = ""
	}
	return f
}

// evaluate applies one policy. An API status error ends admission; others are the policy's own.
func (m mutator) evaluate(ctx context.Context, r *admission.Request, one invocation[*mutating], views *dynamic.Views, namespace *corev1.Namespace, state *dynamic.Reinvocation[asked]) error {
	if one.err != nil {
		return one.err
	}
	key := keyOf(one)
	view, err := views.As(one.match.Kind)
	if err != nil {
		return internal(err)
	}
	ctx = one.policy.compiler.Context(ctx)
	holds, err := one.policy.conditions.Hold(ctx, view, one.param, m.p.config.Authorizer)
	if err != nil || !holds || state.Skip(r, key) {
		return err
	}
	changed, err := m.patch(ctx, one, view, views, namespace)
	state.Done(r, key, one.policy.reinvoke, changed)
	return err
}

func keyOf(one invocation[*mutating]) asked {
	key := asked{policy: one.policy.name, binding: one.binding.name}
	if param, err := meta.Accessor(one.param); one.param != nil && err == nil {
		key.namespace, key.param = param.GetNamespace(), param.GetName()
	}
	return key
}

// patch applies the patches of a policy, one on the result of the other. Those before one that fails stay.
func (m mutator) patch(ctx context.Context, one invocation[*mutating], view *dynamic.View, views *dynamic.Views, namespace *corev1.Namespace) (changed bool, err error) {
	before := view.VersionedObject.Object()
	if before == nil {
		return false, nil
	}
	types := m.p.config.Types(one.match.Kind)
	if types == nil {
		return false, apierrors.NewServiceUnavailable(fmt.Sprintf("Resource kind %s not found. There can be a delay between when CustomResourceDefinitions are created and when they are available.", one.match.Kind))
	}
	var failures []error
	for _, patcher := range one.policy.patches {
		next, err := patcher.Patch(ctx, patch.Request{
			MatchedResource: one.match.Resource, VersionedAttributes: view, ObjectInterfaces: interfaces{m.p, views},
			OptionalVariables: plugincel.OptionalVariableBindings{VersionedParams: one.param, Authorizer: m.p.config.Authorizer},
			Namespace:         plugincel.CreateNamespaceObject(namespace), TypeConverter: types,
		}, celconfig.RuntimeCELCostBudget)
		if err == nil {
			next, err = m.typed(next, before, one.match.Kind, views)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		m.p.config.Matcher.Versions.Default(next, one.match.Kind)
		view.UpdateObject(next)
	}
	after := view.VersionedObject.Object()
	if changed = !equality.Semantic.DeepEqual(before, after); changed {
		if err := views.Replace(after, one.match.Kind); err != nil {
			return false, internal(err)
		}
	}
	return changed, errors.Join(failures...)
}

// typed is obj as the Go type that like is of: merging makes unstructured objects of all.
func (m mutator) typed(obj, like runtime.Object, kind schema.GroupVersionKind, views *dynamic.Views) (runtime.Object, error) {
	fields, ok := obj.(*unstructured.Unstructured)
	if _, untyped := like.(*unstructured.Unstructured); !ok || untyped {
		return obj, nil
	}
	out, err := views.New(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Object, out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}
