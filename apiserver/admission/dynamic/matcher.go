package dynamic

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission"
)

// Versions knows in which versions the objects of a resource are served, and converts between them.
type Versions interface {
	// Equivalents are the other resources that serve the same objects, and the kind that a subresource has there (of the
	// objects themselves, if it is empty).
	Equivalents(resource schema.GroupVersionResource, subresource string) []Match
	// Convert returns obj, of one kind, as another one; it names its kind. The result may share with obj.
	Convert(obj runtime.Object, from, to schema.GroupVersionKind) (runtime.Object, error)
	// New returns an empty object of a kind.
	New(kind schema.GroupVersionKind) (runtime.Object, error)
	// Default fills in what an object of a kind leaves out.
	Default(obj runtime.Object, kind schema.GroupVersionKind)
}

// Match is how a request is seen by what it matches.
type Match struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}

// Matcher holds requests against criteria. It is safe for concurrent use.
type Matcher struct {
	Objects  admission.Objects // namespaces are read through it
	Versions Versions
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// Match says whether a request meets the criteria, and as what. The rules come first: they need nothing but the request. The
// error is of a look-up, and an API status error: a namespace that is not there, for one.
func (m *Matcher) Match(ctx context.Context, r *admission.Request, c *Criteria) (Match, bool, error) {
	match, ok := m.matchRules(r, c)
	if !ok || c.objects != nil && !selects(c.objects, r.Object) && !selects(c.objects, r.Old) {
		return Match{}, false, nil
	}
	if c.namespaces == nil || r.Namespace == "" && !onNamespace(r) { // no namespace exempts what is in none
		return match, true, nil
	}
	of, err := m.namespaceLabels(ctx, r)
	return match, err == nil && c.namespaces.Matches(of), err
}

func (m *Matcher) matchRules(r *admission.Request, c *Criteria) (Match, bool) {
	if len(c.excluded) > 0 {
		if _, excluded := m.matchAs(r, c.excluded, c.equivalent); excluded {
			return Match{}, false
		}
	}
	if len(c.rules) == 0 {
		return Match{r.Resource, r.Kind}, true
	}
	return m.matchAs(r, c.rules, c.equivalent)
}

// matchAs prefers the resource that was asked for, then the first rule that is for an equivalent one.
func (m *Matcher) matchAs(r *admission.Request, rules []rule, equivalent bool) (Match, bool) {
	if matchesAny(rules, r, r.Resource) {
		return Match{r.Resource, r.Kind}, true
	}
	if !equivalent {
		return Match{}, false
	}
	others := m.Versions.Equivalents(r.Resource, r.Subresource)
	for i := range rules {
		for _, other := range others {
			if matches(&rules[i], r, other.Resource) {
				return other, true
			}
		}
	}
	return Match{}, false
}

// selects says whether a selector fits the labels of an object; one without metadata has none that would.
func selects(s labels.Selector, obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	m, err := meta.Accessor(obj)
	return err == nil && s.Matches(labels.Set(m.GetLabels()))
}

// namespaceLabels are those of the namespace that the request is in; of a namespace that is being written, the new ones.
func (m *Matcher) namespaceLabels(ctx context.Context, r *admission.Request) (labels.Set, error) {
	if onNamespace(r) && r.Subresource == "" && r.Object != nil {
		written, err := meta.Accessor(r.Object)
		if err != nil {
			return nil, err
		}
		return written.GetLabels(), nil
	}
	namespace, err := m.Objects.Get(ctx, namespaces, "", r.Namespace)
	if err != nil {
		return nil, err
	}
	return namespace.(*corev1.Namespace).Labels, nil
}

// Namespace is the namespace that a request is in; nil for cluster-scoped objects, namespaces among them.
func (m *Matcher) Namespace(ctx context.Context, r *admission.Request) (*corev1.Namespace, error) {
	if r.Namespace == "" || onNamespace(r) {
		return nil, nil
	}
	found, err := m.Objects.Get(ctx, namespaces, "", r.Namespace)
	if err != nil {
		return nil, err
	}
	return found.(*corev1.Namespace), nil
}
