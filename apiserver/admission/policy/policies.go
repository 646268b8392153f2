package policy

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"kontiki/apiserver/admission/dynamic"
)

// The names of the plugins.
const (
	MutatingPlugin   = "MutatingAdmissionPolicy"
	ValidatingPlugin = "ValidatingAdmissionPolicy"
)

// Config of Policies.
type Config struct {
	Matcher    *dynamic.Matcher
	Authorizer dynamic.Authorizer
	// Params finds the resource of a kind that parameters are of, and whether it is in namespaces.
	Params func(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced, ok bool)
	// Types knows the fields of a kind, for apply configurations; nil if it does not know the kind.
	Types func(kind schema.GroupVersionKind) managedfields.TypeConverter
	// Typer tells the kinds of Go types.
	Typer runtime.ObjectTyper
	// Load reads all policies and bindings. It is called when a request comes before the first Set.
	Load func(context.Context) (Objects, error)
	Log  *slog.Logger // nil discards
}

// Objects are all policies and bindings of the cluster.
type Objects struct {
	Validating         []*admissionv1.ValidatingAdmissionPolicy
	ValidatingBindings []*admissionv1.ValidatingAdmissionPolicyBinding
	Mutating           []*admissionv1.MutatingAdmissionPolicy
	MutatingBindings   []*admissionv1.MutatingAdmissionPolicyBinding
}

// Policies are those in use. They are safe for concurrent use.
type Policies struct {
	config  Config
	current *dynamic.InUse[Objects, inUse]

	// Of use alone, which is called once at a time: what is compiled already.
	validating map[generation]*validating
	mutating   map[generation]*mutating
}

// generation is one state of what a policy says.
type generation struct {
	uid    types.UID
	number int64
}

// inUse is one state of the cluster's policies, in the order in which they are evaluated. Those without a binding are not
// in it.
type inUse struct {
	validating []bound[*validating]
	mutating   []bound[*mutating]
}

// bound is a policy with its bindings.
type bound[P any] struct {
	policy   P
	bindings []*binding
}

// New returns Policies that have nothing in use yet.
func New(config Config) *Policies {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	p := &Policies{config: config}
	p.current = dynamic.NewInUse(config.Load, p.use)
	return p
}

// Set takes policies into use, for requests that come from now on: in the order of their names, the bindings of each in
// the order of theirs.
func (p *Policies) Set(o Objects) { p.current.Set(o) }

// use compiles policies and bindings.
func (p *Policies) use(o Objects) *inUse {
	next := &inUse{}
	bindings := map[string][]*binding{}
	for _, b := range byName(o.ValidatingBindings) {
		bindings[b.Spec.PolicyName] = append(bindings[b.Spec.PolicyName], compileBinding(b.Name, b.Spec.MatchResources, b.Spec.ParamRef, b.Spec.ValidationActions))
	}
	next.validating, p.validating = bind(byName(o.Validating), p.validating, compileValidating, bindings)
	bindings = map[string][]*binding{}
	for _, b := range byName(o.MutatingBindings) {
		bindings[b.Spec.PolicyName] = append(bindings[b.Spec.PolicyName], compileBinding(b.Name, b.Spec.MatchResources, b.Spec.ParamRef, nil))
	}
	next.mutating, p.mutating = bind(byName(o.Mutating), p.mutating, compileMutating, bindings)
	return next
}

// bind compiles policies that have bindings, but for those that have not changed, and puts them together.
func bind[O metav1.Object, P any](objects []O, before map[generation]P, compile func(O) P, bindings map[string][]*binding) (out []bound[P], compiled map[generation]P) {
	compiled = map[generation]P{}
	for _, o := range objects {
		if len(bindings[o.GetName()]) == 0 {
			continue
		}
		key := generation{o.GetUID(), o.GetGeneration()}
		policy, ok := before[key]
		if !ok {
			policy = compile(o)
		}
		compiled[key] = policy
		out = append(out, bound[P]{policy, bindings[o.GetName()]})
	}
	return out, compiled
}

func byName[O metav1.Object](list []O) []O {
	return slices.SortedFunc(slices.Values(list), func(a, b O) int { return cmp.Compare(a.GetName(), b.GetName()) })
}
