package customresources

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"kontiki/apiserver/registry"
)

// Config of the rows of one definition.
type Config struct {
	// Load reads the definition again, as it was when the rows were made. It is called when a schema is first needed,
	// so that until then nobody keeps one in memory.
	Load func() (*apiextensionsv1.CustomResourceDefinition, error)
	// Converter asks a webhook; it is only used for definitions that name one.
	Converter Converter
	// Digest is what everything that the definition says is known by.
	Digest string
	// Ending says whether the definition is being deleted.
	Ending func() bool
	// Gone is closed when the rows have left the table.
	Gone <-chan struct{}
}

// Rows are what one definition puts into the table.
type Rows struct {
	Served []*registry.Resource
	// Stored is the row in whose version objects are kept. It is one of Served, unless its version is not served.
	Stored *registry.Resource
}

// Serves says whether a definition has anything to serve: its names were accepted once.
func Serves(d *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established)
}

// New makes the rows of a definition that Serves.
func New(d *apiextensionsv1.CustomResourceDefinition, config Config) (Rows, error) {
	f := newFamily(d, config)
	stored, err := apihelpers.GetCRDStorageVersion(d)
	if err != nil {
		return Rows{}, fmt.Errorf("definition %s: %w", d.Name, err)
	}
	var rows Rows
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if !v.Served && v.Name != stored {
			continue
		}
		row := f.row(d, v)
		if v.Name == stored {
			rows.Stored = row
		}
		if v.Served {
			rows.Served = append(rows.Served, row)
		}
	}
	for _, row := range rows.Served {
		if row != rows.Stored {
			row.Hub, row.ToHub = rows.Stored, f.toStored(stored).one
		}
	}
	return rows, nil
}

// row is that of one version.
func (f *family) row(d *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) *registry.Resource {
	names := d.Status.AcceptedNames
	gv := schema.GroupVersion{Group: d.Spec.Group, Version: v.Name}
	kind := gv.WithKind(names.Kind)
	r := &registry.Resource{
		GroupVersionResource: gv.WithResource(names.Plural),
		Singular:             names.Singular,
		Kind:                 names.Kind,
		ListKind:             names.ListKind,
		ShortNames:           names.ShortNames,
		Categories:           names.Categories,
		Namespaced:           d.Spec.Scope == apiextensionsv1.NamespaceScoped,
		New:                  func() runtime.Object { return newObject(kind) },
		NewList:              func() runtime.Object { return &unstructured.UnstructuredList{} },
		Prefix:               "/registry/" + d.Spec.Group + "/" + names.Plural,
		FromHub:              f.fromStored(v.Name).one,
		Deprecated:           deprecation(d, v),
		Gone:                 f.config.Gone,
		Digest:               f.config.Digest,
	}
	if f.webhook {
		r.FromHubAll = f.fromStored(v.Name).all
	}
	s := &served{family: f, version: v.Name, kind: kind, namespaced: r.Namespaced}
	if v.Subresources != nil {
		s.hasStatus, s.scale = v.Subresources.Status != nil, v.Subresources.Scale.DeepCopy()
	}
	r.Strategy = s.strategy()
	if s.hasStatus {
		r.Subresources = append(r.Subresources, s.statusSubresource(r))
	}
	if s.scale != nil {
		r.Subresources = append(r.Subresources, s.scaleSubresource())
	}
	r.Columns, r.Row = printer(v.AdditionalPrinterColumns)
	r.Fields = selectable(v.SelectableFields)
	r.Model = s.model
	r.Strategy.CheckCreate = f.refuseAtEnd(r.GroupResource())
	return r
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u
}

// served is one version of a definition, as the funcs of its row need it.
type served struct {
	*family
	version    string
	kind       schema.GroupVersionKind
	namespaced bool
	hasStatus  bool
	scale      *apiextensionsv1.CustomResourceSubresourceScale
}

func (s *served) strategy() registry.Strategy {
	return registry.Strategy{
		Coerce:           s.coerceBody,
		Default:          s.setDefaults,
		DefaultedByHub:   true,
		PrepareForUpdate: s.countStatus,
		Validate:         s.validate,
		ValidateUpdate:   s.validateUpdate,
		UpdateRulesOnly:  true,
		AnyFinalizer:     true,
		Warnings:         finalizerWarnings,

		NeedsResourceVersion: true,
	}
}

// deprecation is the warning for a version that its author advises against: their words, or which version to use.
func deprecation(d *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if !v.Deprecated {
		return ""
	}
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Spec.Group, v.Name, d.Spec.Names.Kind)
	var better []string
	for _, other := range d.Spec.Versions {
		if other.Served && !other.Deprecated && version.CompareKubeAwareVersionStrings(v.Name, other.Name) < 0 {
			better = append(better, other.Name)
		}
	}
	if len(better) == 0 {
		return text
	}
	best := slices.MaxFunc(better, func(a, b string) int { return cmp.Compare(version.CompareKubeAwareVersionStrings(a, b), 0) })
	return fmt.Sprintf("%s; use %s/%s %s", text, d.Spec.Group, best, d.Spec.Names.Kind)
}
